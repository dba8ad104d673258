#include "edge/agent/library_log.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"

namespace croft::edge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class LibraryLogTest : public testing::Test {
 protected:
  std::vector<std::string> lines_;
  ManualClock clock_;
  LibraryLog log_{clock_, [this](const std::string& line) { lines_.push_back(line); }};
};

TEST_F(LibraryLogTest, WhatALibraryQuotesIsPrintable) {
  gpr_log("src/core/lib/iomgr/x.cc", 1, GPR_LOG_SEVERITY_ERROR, "%s", "value=\x1b[31m\nred");
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_THAT(lines_[0], HasSubstr("grpc: value="));
  EXPECT_THAT(lines_[0], Not(HasSubstr("\x1b")));
  EXPECT_THAT(lines_[0], Not(HasSubstr("\n")));
}

TEST_F(LibraryLogTest, APeersFaultsAreNoLines) {
  gpr_log("src/core/ext/transport/chttp2/transport/parsing.cc", 1, GPR_LOG_SEVERITY_ERROR, "Error parsing metadata");
  GOOGLE_LOG(ERROR) << "String field 'x' contains invalid UTF-8 data";
  gpr_log("src/core/lib/iomgr/x.cc", 1, GPR_LOG_SEVERITY_INFO, "%s", "chatter");
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(LibraryLogTest, AFloodIsAFewLines) {
  for (int i = 0; i < 1000; ++i) gpr_log("src/core/lib/iomgr/x.cc", 1, GPR_LOG_SEVERITY_ERROR, "%d", i);
  EXPECT_THAT(lines_, SizeIs(kLibraryLinesMax));
  clock_.advance(std::chrono::minutes(1));
  gpr_log("src/core/lib/iomgr/x.cc", 1, GPR_LOG_SEVERITY_ERROR, "later");
  EXPECT_THAT(lines_.back(), HasSubstr("later (990 lines before it were left out)"));
}

}  // namespace
}  // namespace croft::edge
