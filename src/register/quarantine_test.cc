#include "register/quarantine.h"

#include <gtest/gtest.h>

#include "base/net/test_values.h"
#include "register/owner.h"

namespace croft::core {
namespace {

TEST(Quarantine, ItsHandleIsANameEverywhereAndNoOwners) {
  const struct {
    const char* address;
    const char* handle;
  } rows[] = {{"10.1.0.3", "croft-quarantine-10-1-0-3"},
              {"fd00::", "croft-quarantine-fd000000000000000000000000000000"},
              {"::ffff:10.1.0.3", "croft-quarantine-00000000000000000000ffff0a010003"}};
  for (const auto& row : rows) {
    const net::Address address = net::Address::parse(row.address).value();
    EXPECT_EQ(quarantine_handle_of(address), row.handle);
    const Attribute attribute = in_quarantine(address, "n1.example", "veth1", WallTime{});
    EXPECT_TRUE(is_in_quarantine(attribute));
    EXPECT_FALSE(owner_of(*attribute.handle_id, attribute.secondary)) << row.handle;
    EXPECT_LE(attribute.handle_id->size(), 63U);
  }
}

TEST(Quarantine, SaysSinceWhenAndWhy) {
  const Attribute attribute = in_quarantine(net::Address::v4(0x0a010003), "n1", "veth1", WallTime{});
  EXPECT_EQ(quarantine_text(attribute),
            "in quarantine since 1970-01-01T00:00:00Z, when an ADD on node n1 found it alive over device veth1");
}

TEST(Quarantine, AnotherHoldersIsNone) {
  Attribute tunnels;
  tunnels.handle_id = "ipip-tunnel-addr-n1";
  tunnels.secondary[kTypeKey] = "ipipTunnelAddress";
  EXPECT_FALSE(is_in_quarantine(tunnels));
  EXPECT_FALSE(is_in_quarantine(Attribute{}));
}

}  // namespace
}  // namespace croft::core
