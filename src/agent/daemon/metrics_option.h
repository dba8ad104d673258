#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "agent/metrics/server.h"

namespace croft::app {

/// --metrics-bind-address, into `text`.
inline void add_metrics_option(CLI::App& command, std::string& text) {
  command
      .add_option("--metrics-bind-address", text,
                  "Address for Prometheus metrics and for /healthz and /readyz: 127.0.0.1:9600, [::1]:9600, or :9600 "
                  "for all addresses of both families; without it nothing listens")
      ->type_name("HOST:PORT")
      ->check([](const std::string& given) {
        const auto address = edge::MetricsAddress::parse(given);
        return address ? std::string() : address.error().message;
      });
}

}  // namespace croft::app
