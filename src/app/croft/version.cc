#include "app/croft/version.h"

#include "app/commit.h"

namespace croft::app {

std::string version_text() {
  return std::string("croft ") + CROFT_VERSION + commit_text() + "\nbuilt with " + CROFT_LIBRARIES;
}

}  // namespace croft::app
