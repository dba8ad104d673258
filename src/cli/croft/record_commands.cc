// croft record remove: the way out when a damaged record can't be restored.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest.h"
#include "base/net/echo.h"
#include "base/net/prefix.h"
#include "cli/croft/command_line.h"
#include "ipam/use/transact.h"
#include "register/records.h"

namespace croft::app {
namespace {

struct RemoveOptions {
  std::string kind, name;
  bool force = false;
};

/// Error: invalid_argument, naming the nearest kinds or all.
[[nodiscard]] Result<core::Kind> kind_named(const std::string& name) {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < core::kKindCount; ++i) {
    known.emplace_back(core::name_of(static_cast<core::Kind>(i)));
    if (known.back() == name) return static_cast<core::Kind>(i);
  }
  const std::string meant = did_you_mean(name, known);
  return fail(ErrorCode::invalid_argument,
              fmt::format("there is no kind of record {}{}", net::echo(name),
                          meant.empty() ? fmt::format("; there are {}", fmt::join(known, ", ")) : meant));
}

/// The harm to programs of others when a record that Croft can't read goes, which they may read; empty: it is not
/// theirs.
[[nodiscard]] std::string_view loss_of_others(core::Kind kind) {
  switch (core::traits_of(kind).system) {
    case core::System::croft:
      return {};
    case core::System::kubernetes:
      return "is Kubernetes', whose programs may read it: it is gone for them too";
    case core::System::calico:
      break;
  }
  switch (kind) {
    case core::Kind::pool:
      return "is Calico's, whose programs may read it: without it they take down NAT and tunnels of the pool's pods";
    case core::Kind::affinity:
      return "is Calico's, whose programs may read it: without it they withdraw the route to the block's pods";
    case core::Kind::handle:
      return "is Calico's, whose programs may read it: without it the DEL of its container finds no address";
    default:
      return "is Calico's, whose programs may read it: it is gone for them too";
  }
}

[[nodiscard]] Result<void> refuse_what_is_used(const engine::Context& context, core::Kind kind,
                                               const std::string& subject) {
  const bool is_shared = context.store.capabilities().foreign_writers;
  const std::string_view others = is_shared ? loss_of_others(kind) : std::string_view();
  const std::string_view loss = core::loss_without(kind);
  if (loss.empty() && others.empty()) return {};
  return fail(ErrorCode::refused_for_safety,
              fmt::format("record {} {}. Restore it, or see to it that nobody lives by it and say --force", subject,
                          loss.empty() || others.empty() ? fmt::format("{}{}", loss, others)
                                                         : fmt::format("{}, and {}", loss, others)));
}

[[nodiscard]] Result<int> remove_record(CommandLine& line, const RemoveOptions& options) {
  TRY(const core::Kind kind, kind_named(options.kind));
  TRY(const engine::Context context, line.open());
  // A block is named as `croft check` does, or as its record is.
  const auto cidr = net::Prefix::parse(options.name);
  const bool is_by_cidr = kind == core::Kind::block && cidr;
  const core::Key key = is_by_cidr ? core::block_key(*cidr) : core::Key{kind, options.name};
  const Deadline deadline = engine::deadline_of_use_case(context);
  TRY(const auto record, context.store.get(key, deadline));
  const std::string subject = fmt::format("{} {}", options.kind, options.name);
  if (!record) return fail(ErrorCode::not_found, "there is no record " + subject);
  if (record->value) return fail(ErrorCode::refused_for_safety, "record " + subject + " is not damaged");
  const Error& why = record->value.error();
  if (why.code != ErrorCode::corrupt) {
    return fail(ErrorCode::refused_for_safety,
                "record " + subject + " is not damaged, it only can't be read here: " + why.message);
  }
  // A node whose record is damaged is there all the same: the collector must not take it for gone.
  const bool is_written_anew = kind == core::Kind::node && !context.store.capabilities().foreign_writers;
  const bool is_beside = record->calicos != nullptr;
  if (!options.force && !is_written_anew && !is_beside) TRY_VOID(refuse_what_is_used(context, kind, subject));
  std::optional<core::Value> anew;
  if (is_beside) anew = *record->calicos;
  if (is_written_anew) {
    TRY_VOID(core::check_node_name(options.name));
    core::Node node;
    node.name = options.name;
    anew = std::move(node);
  }
  const store::Write write{key, std::move(anew), store::Condition::if_revision(record->revision)};
  TRY_VOID(engine::commit_once(context, {&write, 1}, deadline));
  if (is_beside) {
    print(
        fmt::format("what Croft keeps beside {0} removed, {0} itself stays: it has no gateway and no cooldown, and "
                    "nothing in it rests\n",
                    subject));
    return 0;
  }
  print(is_written_anew ? fmt::format("record {} written anew, without labels; `croft node remove {}` says that the "
                                      "node is gone\n",
                                      subject, options.name)
                        : fmt::format("record {} removed\n", subject));
  return 0;
}

}  // namespace

void add_record_commands(CLI::App& app, CommandLine& line) {
  CLI::App* record = app.add_subcommand("record", "Damaged records");
  record->require_subcommand(1);
  const auto options = std::make_shared<RemoveOptions>();
  CLI::App* remove = record->add_subcommand("remove", "Remove a damaged record that no backup can restore");
  remove->add_option("KIND", options->kind, "Kind of the record, as `croft check` names it: pool")->required();
  remove->add_option("NAME", options->name, "Its name")->required();
  remove->add_flag("--force", options->force,
                   "Remove it even if addresses, ports or ranges in use could then be given to others");
  remove->footer("A readable record is not removed. See docs/runbooks/damaged-records.md for what each kind means.");
  remove->callback(
      [options, &line] { line.run = [options](CommandLine& given) { return remove_record(given, *options); }; });
}

}  // namespace croft::app
