#include "desk/daemon/desk_pages.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "cli/croft/json_output.h"
#include "desk/decide/relief.h"
#include "history/door/history_file.h"
#include "http/grpc_frame.h"
#include "ipam/commands/explain_request.h"
#include "ipam/use/assign.h"
#include "ipam/use/inspect.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

using Json = nlohmann::ordered_json;
using core::desk::Mark;
using edge::Verdict;
using std::chrono::seconds;

/// A first reading that takes longer is waited for by the page, which asks again.
constexpr std::chrono::milliseconds kPatience{2000};
/// A forecast that warns of a pool.
constexpr std::chrono::hours kSoon{24};
/// A check takes about a KiB for each address that is held, or two; the controller has half a GiB.
constexpr std::uint64_t kCheckedMax = 100'000;
/// Findings are read by people.
constexpr std::size_t kFindingsMax = 300;
constexpr std::size_t kHoldersMax = 262'144;
/// Use is counted once in some minutes.
constexpr std::chrono::minutes kForecastAge{5};

/// Nothing from elsewhere, nothing inline, in nobody's frame.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

edge::WebAnswer in_json(unsigned status, const Json& json) {
  return {status, json.dump(-1, ' ', false, Json::error_handler_t::replace), "application/json"};
}

edge::WebAnswer refused(unsigned status, std::string_view why) { return in_json(status, {{"error", why}}); }

unsigned status_of(ErrorCode code) {
  using Pair = std::pair<ErrorCode, unsigned>;
  constexpr std::array kKnown{Pair(ErrorCode::invalid_argument, 400), Pair(ErrorCode::permission_denied, 403),
                              Pair(ErrorCode::not_found, 404),        Pair(ErrorCode::refused_for_safety, 409),
                              Pair(ErrorCode::unavailable, 503),      Pair(ErrorCode::deadline_exceeded, 503)};
  const auto* const known = std::ranges::find(kKnown, code, &Pair::first);
  return known == kKnown.end() ? 500 : known->second;
}

/// The objects of a listing of `croft -o json` (docs/formats/cli-json.md).
Json objects_of(const Data& data) { return Json::parse(data.json()); }

Json seconds_or_null(const std::optional<seconds>& span) { return span ? Json(span->count()) : Json(); }

Json time_or_null(const std::optional<WallTime>& time) { return time ? Json(rfc3339_exact(*time)) : Json(); }

std::string_view name_of(core::Fullness fullness) {
  constexpr std::array<std::string_view, 3> kNames = {"room", "nearlyFull", "full"};
  return kNames[static_cast<std::size_t>(fullness)];
}

Json forecast_json(const core::history::Forecast& forecast) {
  return {{"fullIn", seconds_or_null(forecast.full_in)},
          {"earliest", seconds_or_null(forecast.earliest)},
          {"latest", seconds_or_null(forecast.latest)},
          {"unknownBecause", forecast.is_known ? Json() : Json(forecast.why)}};
}

Json pool_json(const core::PoolFill& fill, const core::desk::AddressMap& map, Json forecast) {
  const core::Pool& pool = fill.pool;
  const auto occupied = map.occupied(pool.cidr);
  return {{"name", pool.name},
          {"cidr", pool.cidr.to_string()},
          {"family", net::name_of(pool.cidr.family())},
          {"disabled", pool.disabled},
          {"notAllocatable", text_or_null(pool.unallocatable)},
          {"fullness", name_of(core::fullness_of(fill))},
          {"capacity", fill.capacity.as_double()},
          {"held", fill.held},
          {"cooling", fill.cooling},
          {"reserved", fill.reserved.as_double()},
          {"free", fill.free().as_double()},
          {"open", fill.open().as_double()},
          {"stranded", fill.stranded.as_double()},
          {"borrowed", fill.borrowed},
          {"occupied", occupied ? Json(occupied->to_string()) : Json()},
          {"forecast", std::move(forecast)}};
}

Mark mark_of(const engine::AddressView& view) {
  if (view.state == core::AddressState::free && !view.block) return Mark::outside;
  return engine::mark_of(view.state, view.borrowed());
}

/// The letter of its state where all addresses of a cell have the same; else the numbers, in the order of Mark.
Json cell_json(const core::desk::Tally& tally) {
  constexpr std::string_view kLetters = "ofrcubs";
  const auto is_there = [](const net::Count& count) { return !count.is_zero(); };
  if (std::ranges::count_if(tally, is_there) == 1) {
    const auto place = std::ranges::find_if(tally, is_there) - tally.begin();
    return Json(std::string(1, kLetters[static_cast<std::size_t>(place)]));
  }
  Json numbers = Json::array();
  for (const net::Count& count : tally) {
    numbers.push_back(count.fits_64() ? Json(count.as_64()) : Json(count.as_double()));
  }
  return numbers;
}

/// `gone`: the addresses whose pods or nodes a check did not find any more.
Json reliefs_json(const engine::PageData& now, const std::map<std::string, core::history::Forecast>& forecasts,
                  std::vector<net::Address> gone) {
  core::desk::ReliefFacts facts{now.pools, std::move(gone), {}, now.service_ranges, now.are_service_ranges_known};
  for (const auto& [pool, forecast] : forecasts) {
    if (forecast.full_in && *forecast.full_in <= kSoon) facts.soon_full.insert(pool);
  }
  Json json = Json::array();
  for (const core::desk::Relief& relief : core::desk::reliefs_of(facts)) {
    json.push_back({{"pool", relief.pool},
                    {"risk", name_of(relief.risk)},
                    {"title", relief.title},
                    {"effect", relief.effect},
                    {"caution", relief.caution},
                    {"command", text_or_null(relief.command)}});
  }
  return json;
}

/// Anew for each question: it may not be made yet, and its connections are for one thread.
[[nodiscard]] Result<std::unique_ptr<edge::HistoryFile>> open_history(const std::string& path) {
  if (path.empty()) {
    return fail(ErrorCode::not_found, "no history is recorded here: start the controller with --history FILE");
  }
  return edge::HistoryFile::open_to_read(path);
}

[[nodiscard]] Result<std::map<std::string, core::history::Forecast>> read_forecasts(const DeskPages::Parts& parts) {
  TRY(const auto file, open_history(parts.history));
  return file->forecasts(parts.context.clock.now().wall);
}

/// `open`: why cells of the past may hold more than they show.
Json tile_json(const core::desk::Tile& tile, const std::optional<WallTime>& at, const std::string& open) {
  Json cells = Json::array();
  for (const core::desk::Tally& tally : tile.cells) cells.push_back(cell_json(tally));
  return {{"cidr", tile.part.to_string()},
          {"cellLength", tile.cell_length},
          {"at", time_or_null(at)},
          {"open", text_or_null(open)},
          {"cells", std::move(cells)}};
}

}  // namespace

/// The words behind the `?` of a request.
class DeskPages::Query {
 public:
  explicit Query(std::string_view text) {
    while (!text.empty()) {
      const std::string_view one = text.substr(0, text.find('&'));
      text.remove_prefix(std::min(one.size() + 1, text.size()));
      const std::size_t equals = std::min(one.find('='), one.size());
      const std::string value = decoded(one.substr(std::min(equals + 1, one.size())));
      if (!value.empty()) values_[decoded(one.substr(0, equals))].push_back(value);
    }
  }

  [[nodiscard]] std::vector<std::string> all(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? std::vector<std::string>() : found->second;
  }
  /// The first one; empty where it is not given.
  [[nodiscard]] std::string text(const std::string& name) const {
    const auto values = all(name);
    return values.empty() ? std::string() : values.front();
  }
  /// A prefix or an address.
  template <class T>
  [[nodiscard]] Result<T> value(const std::string& name) const {
    const auto parsed = T::parse(text(name));
    if (!parsed) return fail(parsed.error().in(name));
    return *parsed;
  }
  /// A moment of the past; nothing where none is given.
  [[nodiscard]] Result<std::optional<WallTime>> moment(const std::string& name) const {
    if (text(name).empty()) return std::optional<WallTime>();
    const auto value = parse_rfc3339(text(name));
    if (!value) return fail(value.error().in(name));
    return std::optional(*value);
  }

 private:
  static std::string decoded(std::string_view text) {
    std::string blanks(text);
    std::ranges::replace(blanks, '+', ' ');
    return os::percent_decoded(blanks);
  }

  std::map<std::string, std::vector<std::string>> values_;
};

DeskPages::DeskPages(Parts parts)
    : parts_(std::move(parts)),
      page_data_(parts_.context.clock, parts_.page_data_age, [this] { return engine::read_page_data(parts_.context); }),
      checked_(parts_.context.clock, parts_.check_age, [this] { return check(); }),
      forecasts_(parts_.context.clock, kForecastAge, [this] { return read_forecasts(parts_); }) {
  if (parts_.judge) doorkeeper_.emplace(*parts_.judge, parts_.context.clock);
}

DeskPages::~DeskPages() = default;

edge::WebAnswer DeskPages::answer(const edge::WebRequest& request) {
  edge::WebAnswer answer = answer_with(request);
  answer.fields.emplace_back("Content-Security-Policy", kPolicy);
  answer.fields.emplace_back("Referrer-Policy", "no-referrer");
  answer.fields.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  answer.fields.emplace_back("X-Frame-Options", "DENY");
  return answer;
}

std::optional<edge::WebAnswer> DeskPages::refusal(const edge::WebRequest& request) {
  using Kind = Verdict::Kind;
  if (!doorkeeper_) return std::nullopt;
  const Verdict verdict = doorkeeper_->admit(request.authorization);
  if (verdict.kind == Kind::welcome) return std::nullopt;
  edge::WebAnswer answer =
      refused(verdict.kind == Kind::unknown ? 401 : (verdict.kind == Kind::forbidden ? 403 : 503), verdict.why);
  if (verdict.kind == Kind::unknown) answer.fields.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

edge::WebAnswer DeskPages::answer_with(const edge::WebRequest& request) {
  if (!doorkeeper_ && !edge::is_loopback_host(request.host)) {
    return refused(403, "without a token this page answers to localhost, 127.0.0.1 and [::1] alone");
  }
  for (const DeskAsset& asset : desk_assets()) {
    if (request.path == asset.path) return {200, std::string(asset.content), asset.type};
  }
  constexpr auto kRoutes = std::to_array<std::pair<std::string_view, Route>>({{"/api/overview", &DeskPages::overview},
                                                                              {"/api/map", &DeskPages::map},
                                                                              {"/api/who", &DeskPages::who},
                                                                              {"/api/nodes", &DeskPages::nodes},
                                                                              {"/api/blocks", &DeskPages::blocks},
                                                                              {"/api/reliefs", &DeskPages::reliefs},
                                                                              {"/api/explain", &DeskPages::explain}});
  const auto* const route = std::ranges::find(kRoutes, request.path, [](const auto& one) { return one.first; });
  const bool is_for_findings = request.path == "/api/findings";
  if (route == kRoutes.end() && !is_for_findings) return refused(404, "nothing is here");
  if (auto answer = refusal(request)) return *std::move(answer);
  if (is_for_findings) {
    const auto last = checked();
    if (last) return {200, (*last)->answer, "application/json"};
    return refused(status_of(last.error().code), last.error().message);
  }
  const auto json = (this->*route->second)(Query(request.query));
  return json ? in_json(200, *json) : refused(status_of(json.error().code), json.error().message);
}

Result<std::shared_ptr<const engine::PageData>> DeskPages::page_data() {
  auto seen = page_data_.get(kPatience);
  if (seen.value != nullptr) return std::move(seen.value);
  if (seen.trouble) return fail(*seen.trouble);
  return fail(ErrorCode::unavailable, "the register is being read for the first time");
}

Result<DeskPages::Checked> DeskPages::check() const {
  TRY(DeskFindings found, parts_.check());
  const std::size_t total = found.findings.size();
  found.findings.resize(std::min(total, kFindingsMax));
  const std::string at = rfc3339_exact(std::chrono::floor<seconds>(found.checked));
  const Json json{
      {"checkedAt", at}, {"notes", found.notes}, {"total", total}, {"findings", objects_of(json_of(found.findings))}};
  return Checked{at, json.dump(-1, ' ', false, Json::error_handler_t::replace), std::move(found.gone)};
}

/// A check that was made for this question, or within its age. It is made for who asks, and never beside.
Result<std::shared_ptr<const DeskPages::Checked>> DeskPages::checked() {
  TRY(const auto now, page_data());
  std::uint64_t held = 0;
  for (const core::PoolFill& fill : now->pools) held += fill.held;
  if (held > kCheckedMax) {
    return fail(ErrorCode::refused_for_safety,
                "{} addresses are held, more than the {} that are checked here: run croft check instead", held,
                kCheckedMax);
  }
  auto seen = checked_.get(kPatience);
  if (seen.is_being_made) return fail(ErrorCode::unavailable, "the register is being checked");
  if (seen.trouble) return fail(*seen.trouble);
  return std::move(seen.value);
}

/// A history that cannot be read is told of by the slider, whose reach it then does not say.
std::shared_ptr<const DeskPages::Forecasts> DeskPages::forecasts() {
  auto last = parts_.history.empty() ? nullptr : forecasts_.get(kPatience).value;
  return last == nullptr ? std::make_shared<const Forecasts>() : last;
}

Result<Json> DeskPages::overview(const Query& /*query*/) {
  TRY(const auto now, page_data());
  const auto seen = page_data_.get({});
  auto forecast = *forecasts();
  Json pools = Json::array(), ranges = Json::array(), history;
  for (const core::PoolFill& fill : now->pools) {
    Json shown = parts_.history.empty() ? Json() : forecast_json(forecast[fill.pool.name]);
    pools.push_back(pool_json(fill, now->map, std::move(shown)));
  }
  for (const net::Prefix& range : now->service_ranges) ranges.push_back(range.to_string());
  if (!parts_.history.empty()) {
    const auto file = open_history(parts_.history);
    const auto reach = file ? (*file)->reach() : fail(file.error());
    const bool has_begun = reach && reach->until != WallTime{};
    history = has_begun ? Json{{"since", rfc3339_exact(reach->since)}, {"until", rfc3339_exact(reach->until)}}
                        : Json{{"trouble", reach ? "the history has not begun yet" : reach.error().message}};
  }
  return Json{
      {"version", CROFT_VERSION},
      {"store", store::without_user(parts_.store)},
      {"readAt", rfc3339_exact(std::chrono::floor<seconds>(now->begun.wall))},
      {"ageSeconds",
       std::chrono::duration_cast<seconds>(parts_.context.clock.now().since_boot - now->begun.since_boot).count()},
      {"trouble", seen.trouble ? Json(seen.trouble->message) : Json()},
      {"notes", now->notes},
      {"strictAffinity", now->strict_affinity},
      {"history", std::move(history)},
      {"pools", std::move(pools)},
      {"reliefs", reliefs_json(*now, forecast, {})},
      {"serviceRanges", std::move(ranges)}};
}

Result<Json> DeskPages::map(const Query& query) {
  TRY(const net::Prefix part, query.value<net::Prefix>("cidr"));
  TRY(const auto at, query.moment("at"));
  if (!at) {
    TRY(const auto now, page_data());
    return tile_json(now->map.tile(part, core::desk::kTileCellsLog2), at, "");
  }
  TRY(const auto file, open_history(parts_.history));
  TRY(const auto holders, file->holders_at(part, *at, kHoldersMax));
  core::desk::AddressMap then;
  // A doubt is drawn as what is neither used nor free.
  for (const auto& one : holders.held) then.add(one.address, one.is_sure ? Mark::used : Mark::cooling);
  then.freeze();
  return tile_json(then.tile(part, core::desk::kTileCellsLog2), at, holders.open);
}

Result<Json> DeskPages::who(const Query& query) {
  TRY(const net::Address address, query.value<net::Address>("address"));
  TRY(const auto at, query.moment("at"));
  if (at) {
    TRY(const auto file, open_history(parts_.history));
    TRY(const auto answer, file->holder_at(address, *at));
    Json holders = Json::array();
    for (const auto& one : answer.holdings) {
      holders.push_back({{"who", name_of(one.holder)}, {"node", text_or_null(one.holder.node)}});
    }
    return Json{{"address", address.to_string()},
                {"at", time_or_null(at)},
                {"past", {{"holders", std::move(holders)}, {"isSure", answer.is_sure}, {"knownBy", answer.known}}}};
  }
  TRY(const auto now, page_data());
  const auto view = engine::show_address(parts_.context, address);
  if (!view && view.error().code != ErrorCode::not_found) return fail(view.error());
  const bool is_simply_free = !view || view->state == core::AddressState::free;
  const bool is_of_service = now->map.mark_of(address) == Mark::service;
  return Json{{"address", address.to_string()},
              {"state", name_of(is_of_service ? Mark::service : (view ? mark_of(*view) : Mark::outside))},
              {"pool", view ? text_or_null(view->pool) : Json()},
              {"block", view && view->block ? Json(view->block->to_string()) : Json()},
              {"blockOwner", view && view->block_owner ? Json(to_string(*view->block_owner)) : Json()},
              {"holder", is_simply_free ? Json() : objects_of(json_of(std::vector{*view})).front()}};
}

Result<Json> DeskPages::nodes(const Query& /*query*/) {
  TRY(const auto now, page_data());
  return objects_of(json_of(now->nodes));
}

Result<Json> DeskPages::blocks(const Query& query) {
  TRY(const auto now, page_data());
  Json json = Json::array();
  const std::string owner = query.text("owner");
  for (const auto& block : now->map.blocks()) {
    if (block.owner != owner) continue;
    Json counts = Json::object();
    for (std::size_t mark = 0; mark < core::desk::kMarks; ++mark) {
      counts[std::string(name_of(static_cast<Mark>(mark)))] = block.totals[mark];
    }
    json.push_back({{"cidr", block.cidr.to_string()}, {"counts", counts}});
  }
  return json;
}

Result<Json> DeskPages::reliefs(const Query& /*query*/) {
  TRY(const auto now, page_data());
  const auto last = checked();
  if (!last && last.error().code != ErrorCode::refused_for_safety) return fail(last.error());
  return Json{{"checkedAt", last ? Json((*last)->at) : Json()},
              {"notChecked", last ? Json() : Json(last.error().message)},
              {"reliefs", reliefs_json(*now, *forecasts(), last ? (*last)->gone : std::vector<net::Address>())}};
}

Result<Json> DeskPages::explain(const Query& query) {
  const ExplainQuestion question{query.text("node"),   query.text("namespace"), query.text("pod"), query.text("use"),
                                 query.text("family"), query.all("label"),      query.all("pool"), query.all("ip")};
  TRY_VOID(core::check_node_name(question.node));
  TRY(const auto now, page_data());
  const bool is_known =
      std::ranges::any_of(now->nodes, [&](const auto& one) { return one.node.name == question.node; });
  TRY(const core::AssignRequest request, explain_request(parts_.context, question));
  TRY(const core::Explanation explanation, engine::explain(parts_.context, request));
  return Json{{"text", text_of(explanation, request)},
              {"refused", std::holds_alternative<core::Refusal>(explanation.answer)},
              {"note", is_known ? Json()
                                : Json(fmt::format("the register knows no node {}; it is taken for a new one",
                                                   echo(question.node)))}};
}

}  // namespace croft::app
