#include "store/kube/node_cidrs.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/json/writer.h"
#include "base/net/echo.h"
#include "base/net/joined.h"
#include "base/net/lenient.h"
#include "store/kube/form.h"
#include "store/kube/format/requests.h"
#include "store/kube/object_list.h"

namespace croft::store::kube {
namespace {

using Outcome = Answer::Outcome;

constexpr wire::kube::ApiResource kNodes{"", "v1", "nodes"};

/// The API takes no longer name of a manager.
constexpr std::size_t kManagerBytesMax = 128;

/// All that is there: what is left out here would be given to another.
std::vector<std::string> texts_in(const std::optional<wire::JsonRef>& spec) {
  std::vector<std::string> texts;
  const auto all = spec ? member_of(*spec, "podCIDRs") : std::nullopt;
  for (auto one = all ? all->first_child() : std::nullopt; one; one = one->next_sibling()) {
    texts.emplace_back(one->text());
  }
  const auto single = spec ? member_of(*spec, "podCIDR") : std::nullopt;
  if (single && !single->text().empty() && std::ranges::find(texts, single->text()) == texts.end()) {
    texts.emplace_back(single->text());
  }
  return texts;
}

/// Who wrote the ranges, by managedFields.
std::string manager_in(wire::JsonRef object) {
  const auto metadata = member_of(object, "metadata");
  const auto fields = metadata ? member_of(*metadata, "managedFields") : std::nullopt;
  for (auto entry = fields ? fields->first_child() : std::nullopt; entry; entry = entry->next_sibling()) {
    const auto owned = member_of(*entry, "fieldsV1");
    const auto spec = owned ? member_of(*owned, "f:spec") : std::nullopt;
    const auto manager = member_of(*entry, "manager");
    if (spec && manager && (member_of(*spec, "f:podCIDR") || member_of(*spec, "f:podCIDRs"))) {
      return std::string(manager->text().substr(0, kManagerBytesMax));
    }
  }
  return {};
}

[[nodiscard]] SaidByNode said_by(wire::JsonRef object, const wire::kube::ApiMeta& meta) {
  SaidByNode said;
  said.node = meta.name;
  said.being_deleted = meta.deletion_timestamp.has_value();
  said.written_by = manager_in(object);
  const std::vector<std::string> texts = texts_in(member_of(object, "spec"));
  for (const std::string& text : texts) {
    const auto cidr = net::parse_prefix_leniently(text);
    if (!cidr) {
      said.damage = Error(net::Prefix::parse(text).error())
                        .in(fmt::format("node {} says the range {}", net::echo(meta.name), net::echo(text)));
    } else if (std::ranges::find(said.cidrs, *cidr) == said.cidrs.end()) {
      said.cidrs.push_back(*cidr);
    }
  }
  return said;
}

[[nodiscard]] Result<SaidByNode> said_in(const Answer& answer, const std::string& node) {
  TRY(const auto object, wire::kube::decode_object(answer.body, {"v1", "Node", {}, node}));
  return said_by(object.value, object.meta);
}

std::string body_of(const std::vector<net::Prefix>& cidrs) {
  wire::JsonWriter out(wire::JsonWriter::Layout::compact);
  out.begin_object();
  out.key("spec");
  out.begin_object();
  out.key("podCIDR");
  out.text(cidrs.front().to_string());
  out.key("podCIDRs");
  out.begin_array();
  for (const net::Prefix& cidr : cidrs) out.text(cidr.to_string());
  out.end_array();
  out.end_object();
  out.end_object();
  return std::move(out).take();
}

}  // namespace

Result<std::vector<SaidByNode>> list_node_cidrs(Api& api, const Clock& clock, Deadline deadline) {
  std::vector<SaidByNode> all;
  ObjectUse use;
  use.what = "list nodes";
  use.deadline = deadline;
  use.begin = [&] { all.clear(); };
  use.take = [&](wire::JsonRef object, const wire::kube::ApiMeta& meta) -> Result<void> {
    all.push_back(said_by(object, meta));
    return {};
  };
  TRY_VOID(for_each_object(api, clock, {"/api/v1/nodes", list_of_nodes()}, use));
  return all;
}

Result<SaidByNode> find_node_cidrs(Api& api, const std::string& node, Deadline deadline) {
  Request request;
  TRY(request.path, wire::kube::object_path(kNodes, {}, node));
  const Answer answer = api.call(request, deadline);
  if (answer.outcome != Outcome::done) return fail(Error(answer.error).in(fmt::format("node {}", net::echo(node))));
  return said_in(answer, node);
}

Result<void> say_node_cidrs(Api& api, const std::string& node, const std::vector<net::Prefix>& cidrs,
                            Deadline deadline) {
  Request request;
  request.method = Request::Method::patch;
  TRY(request.path, wire::kube::object_path(kNodes, {}, node));
  request.content_type = "application/strategic-merge-patch+json";
  request.body = body_of(cidrs);
  Answer answer = api.call(request, deadline);
  const bool is_settled = answer.outcome == Outcome::done || answer.error.code == ErrorCode::not_found ||
                          answer.error.code == ErrorCode::permission_denied;
  Error why = Error(answer.error).in(fmt::format("say the ranges of node {}", net::echo(node)));
  if (!is_settled) {
    // Refused, since it says some already; or nobody knows.
    Request look;
    look.path = request.path;
    answer = api.call(look, deadline);
  }
  if (answer.outcome != Outcome::done) return fail(std::move(why));
  TRY(const SaidByNode said, said_in(answer, node));
  if (!said.damage && said.cidrs == cidrs) return {};
  if (said.cidrs.empty() && !said.damage) return fail(std::move(why));
  return fail(ErrorCode::conflict, fmt::format("node {} says the ranges {}, and its record says {}", net::echo(node),
                                               net::joined(said.cidrs), net::joined(cidrs)));
}

}  // namespace croft::store::kube
