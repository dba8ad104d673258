#include "services/audit/range_decision.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/net/test_values.h"
#include "register/test_register.h"

namespace croft::core::audit {
namespace {

/// "NAME: CODE" of what failed, then "NAME RANGE" or "NAME: CODE" of what is repaired.
std::vector<std::string> words_of(const RangesDecided& decided) {
  std::vector<std::string> words;
  for (const auto& [name, error] : decided.failures) words.push_back(name + ": " + std::string(name_of(error.code)));
  for (const RangeRepair& repair : decided.repairs) {
    const std::string what = repair.failure ? ": " + std::string(name_of(repair.failure->code))
                                            : " " + (repair.write ? repair.write->range : repair.range);
    words.push_back(repair.name + what);
  }
  return words;
}

TEST(RangeDecision, TheFlagsSayWhatIsNotAsItsRecordSays) {
  using Words = std::vector<std::string>;
  struct Row {
    const char* what;
    const char* first;  ///< the record; nullptr: none
    const char* second;
    const char* primary;  ///< the flags; nullptr: none
    bool in_use;          ///< a Service has an address
    Words words;
  };
  const Row rows[] = {
      {"nothing", nullptr, nullptr, nullptr, false, {}},
      {"nothing, and somebody needs it", nullptr, nullptr, nullptr, true, {"serviceips: invalid_argument"}},
      {"made", nullptr, nullptr, "10.96.0.0/24", false, {"serviceips 10.96.0.0/24"}},
      {"made where a pool is", nullptr, nullptr, "10.9.0.0/24", false, {"serviceips: refused_by_configuration"}},
      {"as it is where a pool is", "10.9.0.0/24", nullptr, nullptr, false, {"serviceips 10.9.0.0/24"}},
      {"as recorded",
       "10.96.0.0/24",
       "fd00::/112",
       nullptr,
       false,
       {"serviceips 10.96.0.0/24", "secondaryserviceips fd00::/112"}},
      {"a record that is no range", "10.96.0.0", nullptr, nullptr, false, {"serviceips: corrupt"}},
      {"two of one family",
       "10.96.0.0/24",
       "10.97.0.0/24",
       nullptr,
       false,
       {"secondaryserviceips: refused_by_configuration"}},
      {"a second one that the flags leave out stays",
       "10.96.0.0/24",
       "fd00::/112",
       "10.96.0.0/24",
       false,
       {"serviceips 10.96.0.0/24"}},
  };
  for (const Row& row : rows) {
    TestRegister reg;
    Pool pool;
    pool.name = "p";
    pool.cidr = prefix("10.9.0.0/16");
    reg.put(pool_key("p"), pool);
    RangesSeen seen;
    if (row.first != nullptr) seen.stored[std::string(kServiceIps)] = {row.first, "", {}};
    if (row.second != nullptr) seen.stored[std::string(kSecondaryServiceIps)] = {row.second, "", {}};
    RangesWanted wanted;
    if (row.primary != nullptr) wanted.cidrs.emplace().primary = prefix(row.primary);
    std::vector<ServiceUse> services;
    if (row.in_use) services.emplace_back().cluster_ips = {"10.96.0.1"};
    const auto plan = reg.plan<Words>([&](const Snapshot& snapshot) -> Step<Words> {
      Reader reader(snapshot);
      const AddressClaims claims(reader);
      if (!reader.complete()) return reader.missing();
      return Plan<Words>{words_of(decide_addresses(seen, wanted, services, claims)), {}};
    });
    ASSERT_TRUE(plan) << row.what;
    EXPECT_EQ(plan->answer, row.words) << row.what;
  }
}

}  // namespace
}  // namespace croft::core::audit
