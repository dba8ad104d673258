#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "store/store.h"

namespace croft::bench {

/// The attributes of a held address, as long as those of real containers.
[[nodiscard]] core::Attribute holder(const std::string& container, const Instant& now);

/// The writes of an ADD: a half-full /26 block, always the same one, and a new handle.
[[nodiscard]] std::vector<store::Write> commit_sample(const Instant& now, const std::string& container);

}  // namespace croft::bench
