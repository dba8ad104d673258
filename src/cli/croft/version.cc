#include "cli/croft/version.h"

#include "cli/stores/commit.h"

namespace croft::app {

std::string version_text() {
  return std::string("croft ") + CROFT_VERSION + commit_text() + "\nbuilt with " + CROFT_LIBRARIES;
}

}  // namespace croft::app
