#pragma once

#include "base/error.h"
#include "ipam/decide/assign.h"

namespace croft::edge {

/// A refusal in the words of Calico's plugin (docs/notes/calico-ipam.md#pool-choice), which people and tools search
/// for. The message is Calico's; the code and the details, every pool considered and why not, are Croft's. Where Calico
/// has no words the message is Croft's too.
[[nodiscard]] Error calico_error(const core::Refusal& refusal, const core::AssignRequest& request);

}  // namespace croft::edge
