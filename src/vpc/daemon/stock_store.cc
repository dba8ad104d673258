#include "vpc/daemon/stock_store.h"

#include <chrono>
#include <utility>

#include "os/files.h"
#include "store/sqlite/sqlite_store.h"
#include "vpc/use/warm_stock.h"

namespace croft::app {
namespace {

constexpr std::chrono::seconds kOpenLimit{10};
constexpr std::chrono::seconds kLookLimit{1};

}  // namespace

Result<StockStore> open_stock_store(const std::string& path, bool was_lost, const Clock& clock, Random& random) {
  const auto soon = [&] { return Deadline::after(clock.now(), kOpenLimit); };
  const store::SqliteOptions options{.create = true, .verify = true};
  StockStore stock;
  auto opened = store::open_sqlite_store(path, options, clock, soon());
  if (!opened && opened.error().code == ErrorCode::corrupt) {
    auto aside = store::set_damaged_store_aside(path, clock, soon());
    if (!aside) return fail(aside.error().in("the store is damaged, and is not set aside: " + opened.error().message));
    stock.aside = *std::move(aside);
    opened = store::open_sqlite_store(path, options, clock, soon());
  }
  if (!opened && stock.aside) {
    // Whoever mends what is in the way has to know where it went.
    return fail(opened.error().in("the store was damaged and is set aside as " + stock.aside->path +
                                  ", and no new one can be made"));
  }
  if (!opened) return fail(opened.error());
  stock.store = *std::move(opened);
  bool may_have_been = was_lost;
  if (!may_have_been) {
    // An agent that died between setting aside and the note that follows would else begin with nothing.
    TRY(may_have_been, store::has_store_set_aside(path));
  }
  if (!may_have_been) return stock;
  const engine::Context context{*stock.store, clock, random};
  TRY(const auto view, engine::view_stock(context));
  if (view.node && !view.node->node.empty()) return stock;
  TRY_VOID(engine::begin_rebuild(context));
  stock.begins_anew = true;
  return stock;
}

std::optional<Error> loss_of(store::Store& store, const std::string& path, const Clock& clock) {
  auto position = store.position(Deadline::after(clock.now(), kLookLimit));
  if (position) return std::nullopt;
  const ErrorCode code = position.error().code;
  const auto there = os::file_status(path);
  const bool is_gone = there && !*there;
  if (code != ErrorCode::corrupt && !is_gone) return std::nullopt;
  return std::move(position.error());
}

}  // namespace croft::app
