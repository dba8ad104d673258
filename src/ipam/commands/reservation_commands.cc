// croft reservation: addresses that no pod gets by itself.

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/counted.h"
#include "cli/croft/command_line.h"
#include "cli/croft/json_output.h"
#include "cli/croft/listing.h"
#include "ipam/use/inspect.h"
#include "ipam/use/pools.h"

namespace croft::app {
namespace {

[[nodiscard]] Result<Listing> look_at(const CommandLine& line, const engine::Context& context) {
  TRY(const auto reservations, engine::list_reservations(context));
  TRY(const auto pools, engine::list_pools(context));
  Table table({"NAME", "POOL", "CIDRS"});
  for (const core::Reservation& one : reservations) {
    std::string cidrs;
    std::set<std::string> of;
    for (const net::Prefix& cidr : one.cidrs) {
      cidrs += (cidrs.empty() ? "" : ",") + cidr.to_string();
      for (const core::Pool& pool : pools) {
        if (pool.cidr.overlaps(cidr)) of.insert(pool.name);
      }
    }
    std::string names;
    for (const std::string& name : of) names += (names.empty() ? "" : ",") + name;
    table.add({one.name, names, cidrs});
  }
  return Listing{"No reservations.", std::move(table), line.json() ? json_of(reservations) : Data(), ""};
}

struct CreateOptions {
  std::string name;
  std::vector<std::string> cidrs;
};

/// Pods keep what they hold; somebody who reserves an address wants to know that it is not free yet.
[[nodiscard]] Result<void> tell_of_holders(const engine::Context& context, const core::Reservation& made) {
  TRY(const auto addresses, engine::list_addresses(context));
  std::size_t held = 0;
  const engine::AddressView* first = nullptr;
  for (const engine::AddressView& one : addresses) {
    const auto contains = [&](const net::Prefix& cidr) { return cidr.contains(one.address); };
    if (one.state != core::AddressState::held || std::ranges::none_of(made.cidrs, contains)) continue;
    if (held++ == 0) first = &one;
  }
  if (held == 0) return {};
  tell(
      fmt::format("croft: {} of reservation {} {} held, {} by {}. The holders keep them until they end; `croft ip "
                  "list` names them",
                  counted(held, "address", "es"), made.name, held == 1 ? "is" : "are", first->address.to_string(),
                  first->pod.empty() ? first->handle_id : first->namespace_name + "/" + first->pod));
  return {};
}

[[nodiscard]] Result<int> create(CommandLine& line, const CreateOptions& options) {
  core::Reservation wanted;
  wanted.name = options.name;
  for (const std::string& text : options.cidrs) {
    // An address is a prefix of itself.
    if (const auto address = net::Address::parse(text)) {
      wanted.cidrs.push_back(net::Prefix::containing(*address, net::bit_length(address->family())));
      continue;
    }
    TRY(const net::Prefix cidr, prefix_argument("--cidr", text));
    wanted.cidrs.push_back(cidr);
  }
  TRY(const engine::Context context, line.open());
  TRY(const bool was_there, engine::create_reservation(context, wanted));
  print(fmt::format("reservation/{} {}\n", wanted.name, was_there ? "unchanged" : "created"));
  TRY_VOID(tell_of_holders(context, wanted));
  return 0;
}

[[nodiscard]] Result<int> remove(CommandLine& line, const std::string& name) {
  TRY(const engine::Context context, line.open());
  TRY_VOID(engine::delete_reservation(context, name));
  print(fmt::format("reservation/{} deleted\n", name));
  return 0;
}

}  // namespace

void add_reservation_commands(CLI::App& app, CommandLine& line) {
  CLI::App* noun = app.add_subcommand("reservation", "Reservations: addresses that no pod gets by itself");
  noun->require_subcommand(1);
  noun->fallthrough();
  const auto options = std::make_shared<CreateOptions>();
  CLI::App* creation = noun->add_subcommand("create", "Keep addresses from being handed out; holders keep theirs");
  creation->add_option("NAME", options->name, "Name: lower-case letters, digits, '-' and '.'")->required();
  creation->add_option("--cidr", options->cidrs, "Prefix or address to keep, e.g. 10.1.0.0/28; may be repeated")
      ->required()
      ->delimiter(',')
      ->allow_extra_args(false);
  creation->callback([&line, options] { line.run = [options](CommandLine& l) { return create(l, *options); }; });
  CLI::App* listing = noun->add_subcommand("list", "List all reservations with the pools they lie in");
  add_list_options(*listing, line);
  listing->callback([&line] {
    line.run = [](CommandLine& l) {
      return list(l, [&l](const engine::Context& context) { return look_at(l, context); });
    };
  });
  const auto name = std::make_shared<std::string>();
  CLI::App* deletion = noun->add_subcommand("delete", "Delete a reservation; a pool's own goes with its pool");
  deletion->add_option("NAME", *name, "Name of the reservation")->required();
  deletion->callback([&line, name] { line.run = [name](CommandLine& l) { return remove(l, *name); }; });
}

}  // namespace croft::app
