#include "ipam/audit/handle_audit.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/counted.h"

namespace croft::core::audit {
namespace {

const std::map<std::string, std::uint32_t> kNothingHeld;

void add(Report& report, Finding::Kind kind, std::string subject, std::string what, std::string remedy) {
  report.findings.push_back({kind, std::move(subject), std::move(what), std::move(remedy)});
}

/// Addresses that the DEL of a living container may not find.
constexpr std::string_view kFoundOnceGone =
    "leave the addresses to their holder while it lives; those that its DEL leaves behind the controller frees, or "
    "`croft check --cni-cache` on that node names them";

/// Blocks that a handle counts wrong. A text with them for people: the first ones, and how many more.
class Miscounts {
 public:
  void add(const std::string& block, std::uint32_t counted, std::uint32_t held) {
    if (++count_ > kNamedMax) return;
    text_ += fmt::format("{}block {}: counts {}, holds {}", text_.empty() ? "" : "; ", block, counted, held);
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::string text() const {
    return count_ <= kNamedMax ? text_ : fmt::format("{}; and {}", text_, counted(count_ - kNamedMax, "more block"));
  }

 private:
  static constexpr std::size_t kNamedMax = 10;
  std::string text_;
  std::size_t count_ = 0;
};

}  // namespace

void HandleAudit::check(const Key& key, const Handle& handle, const Unseen& unseen, Report& report) {
  if (!seen_.insert(handle.id).second) return;
  ++report.handles;
  if (!handle.deleted) compare(key, handle, unseen, report);
}

void HandleAudit::finish(const Unseen& unseen, Report& report) const {
  if (unseen.lacks_all(Kind::handle)) return;
  std::set<std::string> told;
  for (const Allocation& one : report.allocations) {
    const std::string& id = one.handle_id;
    if (one.cooling || !counts_.contains(id) || seen_.contains(id) || unseen.has(handle_key(id)) ||
        !told.insert(id).second)
      continue;
    add(report, Finding::Kind::handle_missing, "handle " + id,
        fmt::format("{} holds addresses in block {}, but the handle has no record", holder_text(id, one.attributes),
                    one.block.to_string()),
        std::string(kFoundOnceGone));
  }
}

void HandleAudit::compare(const Key& key, const Handle& handle, const Unseen& unseen, Report& report) const {
  Miscounts more, fewer;
  const auto counts = counts_.find(handle.id);
  const auto& held = counts == counts_.end() ? kNothingHeld : counts->second;
  bool is_unknown_somewhere = false;
  for (const auto& [block, counted] : handle.blocks) {
    const auto found = held.find(block);
    const std::uint32_t count = found == held.end() ? 0 : found->second;
    if (unseen.may_have_block(block)) {
      is_unknown_somewhere = true;
    } else if (counted != count) {
      (counted > count ? more : fewer).add(block, counted, count);
    }
  }
  for (const auto& [block, count] : held) {
    if (!handle.blocks.contains(block)) fewer.add(block, 0, count);
  }
  const std::string subject = "handle " + handle.id;
  if (held.empty() && !is_unknown_somewhere) {
    report.empty_handles.push_back({key, handle.id});
    add(report, Finding::Kind::handle_empty, subject, more.empty() ? "it names no block" : more.text(),
        "`croft check --report FILE`, then `croft ip release --from-report FILE`; an ADD under way looks the same");
  } else if (!more.empty()) {
    add(report, Finding::Kind::handle_miscount, subject, more.text(),
        "nothing has to be done: the DEL of its container counts anew");
  }
  if (!fewer.empty()) {
    add(report, Finding::Kind::handle_undercount, subject, fewer.text(), std::string(kFoundOnceGone));
  }
}

}  // namespace croft::core::audit
