#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "http/http1_server.h"
#include "vpc/simulator/world.h"

namespace croft::cloud::simulator {

/// A World behind HTTP: `POST /` is the API, `/<node>/meta-data/…` the metadata, `/sim/…` the controls.
class Simulator {
 public:
  /// `clock` and `random` must outlive it; `random` is drawn from under one lock. Errors: those of Http1Server::listen.
  [[nodiscard]] static Result<std::unique_ptr<Simulator>> start(Config config, std::string_view where,
                                                                wire::ucloud::Sha1 sha1, const Clock& clock,
                                                                Random& random);
  virtual ~Simulator() = default;
  [[nodiscard]] virtual std::string where() const = 0;

 protected:
  Simulator() = default;
};

}  // namespace croft::cloud::simulator
