#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "vpc/daemon/ucloud_place.h"

namespace croft::app {

/// The flags of `croftd vpc-agent` (docs/warm-pool.md#flags). Empty texts: not said.
struct VpcAgentOptions {
  std::uint32_t low = 3, high = 50;
  std::uint32_t cooldown_s = 30;
  bool calico_policy = false;
  std::string node;
  std::string socket = "/run/cni-vpc-ipamd.sock";
  std::string store = "sqlite:/var/lib/croft/vpc.db";
  UCloudPlace cloud;
  std::string interface;
  bool no_probe = false;
  std::uint32_t probe_wait_ms = 1000;
  std::uint32_t node_max = 0;
  std::uint32_t reconcile_s = 60, doubt_s = 60, grace_s = 60, young_s = 120;
  std::uint32_t release_unknown_after_s = 0;
  std::vector<std::string> peers;
  std::string listen;
  std::string tls_ca, tls_certificate, tls_key;
  bool insecure_peers = false;
  bool operators_over_tcp = false;
  std::string kubernetes;
  std::string metrics;
  std::string log_directory = "/var/log/ucloud";
  std::vector<std::uint32_t> users = {0};
};

/// The flags that set them, with their help. `options` outlives the command.
void add_vpc_agent_options(CLI::App& command, VpcAgentOptions& options);

}  // namespace croft::app
