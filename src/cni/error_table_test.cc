#include "cni/error_table.h"

#include <gtest/gtest.h>

namespace croft::edge {
namespace {

using wire::cni::Code;

TEST(ErrorTable, EveryErrorCodeHasItsRow) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    const auto one = static_cast<ErrorCode>(code);
    EXPECT_NE(exit_code_of(one), ExitCode::fine) << name_of(one);
    EXPECT_NE(exit_code_of(one), ExitCode::findings) << name_of(one);
    EXPECT_GT(static_cast<int>(cni_code_of(one)), 0) << name_of(one);
    // What may pass by itself must not look final to the runtime.
    EXPECT_TRUE(!is_transient(one) || cni_code_of(one) == Code::try_again_later) << name_of(one);
  }
}

TEST(ErrorTable, NumbersOfDesign) {
  const auto cni = [](ErrorCode code) { return static_cast<int>(cni_code_of(code)); };
  const auto exit = [](ErrorCode code) { return static_cast<int>(exit_code_of(code)); };
  EXPECT_EQ(cni(ErrorCode::invalid_argument), 7);
  EXPECT_EQ(cni(ErrorCode::no_pool), 11);
  EXPECT_EQ(cni(ErrorCode::read_only), 11);
  EXPECT_EQ(cni(ErrorCode::permission_denied), 11);
  EXPECT_EQ(cni(ErrorCode::exhausted), 100);
  EXPECT_EQ(cni(ErrorCode::corrupt), 101);
  EXPECT_EQ(cni(ErrorCode::newer_version), 101);
  EXPECT_EQ(cni(ErrorCode::refused_by_configuration), 102);
  EXPECT_EQ(cni(ErrorCode::refused_for_safety), 102);
  EXPECT_EQ(cni(ErrorCode::internal), 999);
  EXPECT_EQ(exit(ErrorCode::invalid_argument), 2);
  EXPECT_EQ(exit(ErrorCode::unavailable), 4);
  EXPECT_EQ(exit(ErrorCode::deadline_exceeded), 4);
  EXPECT_EQ(exit(ErrorCode::permission_denied), 4);
  EXPECT_EQ(exit(ErrorCode::read_only), 4);
  EXPECT_EQ(exit(ErrorCode::refused_for_safety), 5);
  EXPECT_EQ(exit(ErrorCode::exhausted), 1);
}

TEST(ErrorTable, MessageAndDetailsStay) {
  EXPECT_EQ(to_cni_error({ErrorCode::exhausted, "no address is free", "pool a: full"}),
            (wire::cni::Error{Code::no_address, "no address is free", "pool a: full"}));
}

TEST(ErrorTable, StatusFailsWithItsOwnCodes) {
  EXPECT_EQ(as_status_error({Code::store_damaged, "m", "d"}), (wire::cni::Error{Code::plugin_not_available, "m", "d"}));
  EXPECT_EQ(as_status_error({Code::limited_connectivity, "m", ""}).code, Code::limited_connectivity);
}

}  // namespace
}  // namespace croft::edge
