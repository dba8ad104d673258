#include "ipam/commands/explain_request.h"

#include <algorithm>

#include "base/printable.h"
#include "base/texts.h"
#include "ipam/decide/pool_choice.h"
#include "ipam/use/inspect.h"

namespace croft::app {
namespace {

core::PoolUse pool_use_of(const std::string& text) {
  return text == "tunnel" ? core::PoolUse::tunnel : core::PoolUse::workload;
}

[[nodiscard]] Result<core::Labels> labels_of(const std::vector<std::string>& texts) {
  core::Labels labels;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return fail(ErrorCode::invalid_argument, "--namespace-label {}: not KEY=VALUE", echo(text));
    }
    labels[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return labels;
}

/// Sorts the pools asked for by family; one that does not exist counts as of the family asked for.
[[nodiscard]] Result<void> ask_for_pools(const engine::Context& context, const ExplainQuestion& options,
                                         core::AssignRequest& request) {
  TRY(const std::vector<core::Pool> pools, engine::list_pools(context));
  for (const std::string& text : options.pools) {
    const core::AskedPool asked = core::asked_pool(text);
    const auto it = std::find_if(pools.begin(), pools.end(),
                                 [&](const core::Pool& p) { return core::is_pool_asked_for(asked, p.name, p.cidr); });
    const bool is_v6 = it != pools.end() ? it->cidr.family() == net::Family::v6 : options.family == "6";
    (is_v6 ? request.pools.v6 : request.pools.v4).push_back(asked);
  }
  return {};
}

/// Which families are wanted: as said, else of the pools and addresses asked for, else IPv4.
void choose_families(const ExplainQuestion& options, core::AssignRequest& request) {
  const auto has = [&](net::Family family) {
    return std::any_of(request.addresses.begin(), request.addresses.end(),
                       [&](const net::Address& a) { return a.family() == family; });
  };
  const bool v6 = has(net::Family::v6) || !request.pools.v6.empty();
  const bool v4 = has(net::Family::v4) || !request.pools.v4.empty() || !v6;
  request.count.v4 = (options.family.empty() ? v4 : options.family != "6") ? 1 : 0;
  request.count.v6 = (options.family.empty() ? v6 : options.family != "4") ? 1 : 0;
}

}  // namespace

Result<core::AssignRequest> explain_request(const engine::Context& context, const ExplainQuestion& question) {
  core::AssignRequest request;
  // Nobody's: what such a pod holds already would be the answer otherwise.
  request.owner = {"croft-explain", "no-container", "eth0"};
  request.node = {core::AffinityOwner::Type::host, question.node};
  request.pod = {question.pod, question.namespace_name, ""};
  request.use = pool_use_of(question.use);
  TRY(request.namespace_labels, labels_of(question.namespace_labels));
  for (const std::string& text : question.addresses) {
    auto address = net::Address::parse(text);
    if (!address) return fail(address.error().in("--ip"));
    request.addresses.push_back(*address);
  }
  TRY_VOID(ask_for_pools(context, question, request));
  choose_families(question, request);
  if (context.store.capabilities().foreign_writers) request.default_block_limit = core::kCalicoBlockLimit;
  return request;
}

}  // namespace croft::app
