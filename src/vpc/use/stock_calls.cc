#include "vpc/use/stock_calls.h"

#include <utility>
#include <variant>

namespace croft::engine {
namespace {

namespace warm = core::warm;

}  // namespace

core::Step<warm::Answer> plan_giving(const core::Snapshot& snapshot, const warm::Request& request, const Instant& now,
                                     const Writer& writer) {
  auto step = warm::plan_assign(snapshot, request, now);
  const auto* plan = std::get_if<core::Plan<warm::Answer>>(&step);
  const bool gives = plan != nullptr && !plan->writes.empty();
  if (gives && writer.may_give && !writer.may_give()) return core::Plan<warm::Answer>{warm::Empty{}, {}};
  return writer.in_term(snapshot, std::move(step));
}

Result<warm::Answer> assign_from_stock(const Context& context, const warm::Request& request, const Writer& writer) {
  return transact(context, TurnTaking::first, [&](const core::Snapshot& snapshot, const Instant& now) {
    return plan_giving(snapshot, request, now, writer);
  });
}

Result<std::vector<core::StockAddress>> release_to_stock(const Context& context, const warm::Release& release,
                                                         const Writer& writer) {
  return transact(context, TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant& now) {
    auto step = warm::plan_release(snapshot, release, now);
    // An agent that hangs may have the ADD before it: the next term keeps that one from being done later.
    const bool is_plan = std::holds_alternative<core::Plan<std::vector<core::StockAddress>>>(step);
    return is_plan && !writer.term ? warm::put_in_term(snapshot, 0, std::move(step))
                                   : writer.in_term(snapshot, std::move(step));
  });
}

std::string damage_of_stock(const Error& error) {
  std::string what = error.message;
  for (const char* const remedy : {". Nothing is handed out", "; nothing was changed", ": follow docs/", "; restore"}) {
    what = what.substr(0, what.find(remedy));
  }
  return what;
}

Result<StockView> view_stock(const Context& context) {
  StockView view;
  Loader loader(context.store, deadline_of_use_case(context));
  TRY_VOID(read_for(context.clock, loader, [&](core::Reader& reader) {
    const auto stock = warm::Stock::read(reader);
    if (!stock) return;
    view = {};
    for (const core::StockAddress* one : stock->addresses()) view.addresses.push_back(*one);
    for (const core::StockIntent* one : stock->intents()) view.intents.push_back(*one);
    if (stock->node() != nullptr) view.node = *stock->node();
    view.damaged = stock->damaged();
  }));
  return view;
}

}  // namespace croft::engine
