#include "ipam/use/explain.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ipam/use/inspect.h"
#include "store/forwarding_store.h"

namespace croft::engine {
namespace {

/// The store of who is made up. That the owner holds nothing is known without asking for a handle, and so without the
/// right to. A node that this account may not read has no labels here.
class MadeUp final : public store::ForwardingStore {
 public:
  MadeUp(store::Store& beneath, const core::AssignRequest& request)
      : ForwardingStore(beneath),
        node_(core::node_key(request.node.name)),
        absent_{core::handle_key(core::handle_of(request.owner))} {}

  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    core::Missing rest = wanted;
    for (const core::Key& key : absent_) rest.records.erase(key);
    auto answer = beneath().read(rest, deadline);
    const bool may_be_the_node =
        !answer && answer.error().code == ErrorCode::permission_denied && rest.records.contains(node_);
    if (may_be_the_node) {
      node_denied_ = answer.error();
      absent_.insert(node_);
      return read(wanted, deadline);
    }
    if (!answer) return answer;
    std::vector<std::optional<store::Record>> records;
    auto next = answer->records.begin();
    for (const core::Key& key : wanted.records) {
      records.push_back(absent_.contains(key) ? std::nullopt : std::move(*next++));
    }
    answer->records = std::move(records);
    return answer;
  }
  [[nodiscard]] const std::optional<Error>& node_denied() const { return node_denied_; }

 private:
  const core::Key node_;
  std::set<core::Key> absent_;
  std::optional<Error> node_denied_;
};

}  // namespace

Result<core::Explanation> explain(const Context& context, const core::AssignRequest& request) {
  TRY_VOID(core::check_node_name(request.node.name));
  MadeUp store(context.store, request);
  TRY(auto explanation, transact(Context{store, context.clock, context.random, context.time_limit},
                                 TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant& now) {
                                   return core::plan_explain(snapshot, request, now);
                                 }));
  if (!store.node_denied()) return explanation;
  TRY(const std::vector<core::Pool> pools, list_pools(context));
  const bool goes_by_labels = std::ranges::any_of(
      pools, [](const core::Pool& pool) { return !pool.node_selector.empty() && pool.node_selector != "all()"; });
  if (goes_by_labels) return fail(*store.node_denied());
  return explanation;
}

}  // namespace croft::engine
