#include "services/decide/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/decide/cluster_ips.h"
#include "services/decide/test_service.h"
#include "services/decide/type_changes.h"
#include "services/decide/validation.h"

// The tables of docs/notes/service-ranges.md#family-tables. A cell is the policy's letter and the families; x:
// refused.

namespace croft::core {
namespace {

using net::Family;
using Texts = std::vector<std::string>;
using Families = std::vector<Family>;

const Families kSingle4{Family::v4};
const Families kSingle6{Family::v6};
const Families kDual4{Family::v4, Family::v6};
const Families kDual6{Family::v6, Family::v4};

Families families_of(const std::string& digits) {
  Families result;
  for (const char c : digits) result.push_back(c == '4' ? Family::v4 : Family::v6);
  return result;
}

std::optional<IpFamilyPolicy> policy_of(char letter) {
  switch (letter) {
    case 'S':
      return IpFamilyPolicy::single_stack;
    case 'P':
      return IpFamilyPolicy::prefer_dual_stack;
    case 'R':
      return IpFamilyPolicy::require_dual_stack;
    default:
      return std::nullopt;
  }
}

std::string cell(const Service& service) {
  std::string result = !service.ip_family_policy                                        ? "-"
                       : *service.ip_family_policy == IpFamilyPolicy::single_stack      ? "S"
                       : *service.ip_family_policy == IpFamilyPolicy::prefer_dual_stack ? "P"
                                                                                        : "R";
  for (const Family family : service.ip_families) result += family == Family::v4 ? '4' : '6';
  return result;
}

/// 4 and 6 changed for each other.
std::string swapped(std::string text) {
  for (char& c : text) c = c == '4' ? '6' : c == '6' ? '4' : c;
  return text;
}

std::string decide(Service service, const Service* before, const Families& cluster) {
  normalize_cluster_ips(service, before);
  return settle_families(service, before, cluster).empty() ? cell(service) : "x";
}

/// `ips`: "4", "64", "h" for headless, "s" for headless without a selector, "".
Service created(const std::string& ips, char policy, const std::string& families) {
  Service service = service_of();
  if (ips == "s") service.selector.clear();
  if (ips == "s" || ips == "h") {
    service.cluster_ips = {"None"};
  } else {
    for (const char c : ips) service.cluster_ips.emplace_back(c == '4' ? "10.0.0.5" : "fd00::5");
  }
  if (!service.cluster_ips.empty()) service.cluster_ip = service.cluster_ips.front();
  service.ip_families = families_of(families);
  service.ip_family_policy = policy_of(policy);
  return service;
}

struct FamilyRow {
  const char* ips;  ///< alternatives, separated by blanks; "-" is none
  const char* policies;
  const char* cells;  ///< for no families, 4, 6, 46, 64
};

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> result;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    result.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return result;
}

constexpr const char* kColumns[] = {"", "4", "6", "46", "64"};

void check_table(const Families& cluster, bool swap, std::initializer_list<FamilyRow> rows) {
  const auto side = [&](const std::string& text) { return swap ? swapped(text) : text; };
  for (const FamilyRow& row : rows) {
    const std::vector<std::string> cells = words(row.cells);
    ASSERT_EQ(cells.size(), 5U);
    for (const std::string& ips : words(row.ips)) {
      for (const char* policy = row.policies; *policy != '\0'; ++policy) {
        for (std::size_t column = 0; column < 5; ++column) {
          const std::string wanted = ips == "-" ? "" : side(ips);
          const std::string families = side(kColumns[column]);
          EXPECT_EQ(decide(created(wanted, *policy, families), nullptr, cluster), side(cells[column]))
              << "addresses " << ips << " policy " << *policy << " families [" << families << "]";
        }
      }
    }
  }
}

const std::initializer_list<FamilyRow> kSingleRows{
    {"- 4 h", "-S", "S4 S4 x x x"},    {"- 4 h", "P", "P4 P4 x x x"},      {"- 4 h", "R", "x x x x x"},
    {"46 64", "-SPR", "x x x x x"},    {"s", "-R", "R46 R46 R64 R46 R64"}, {"s", "S", "S4 S4 S6 x x"},
    {"s", "P", "P46 P46 P64 P46 P64"},
};

const std::initializer_list<FamilyRow> kDualRows{
    {"- h", "-S", "S4 S4 S6 x x"},     {"- h", "P", "P46 P46 P64 P46 P64"}, {"- h", "R", "R46 R46 R64 R46 R64"},
    {"4", "-S", "S4 S4 x x x"},        {"4 46", "P", "P46 P46 x P46 x"},    {"4 46", "R", "R46 R46 x R46 x"},
    {"6", "-S", "S6 x S6 x x"},        {"6 64", "P", "P64 x P64 x P64"},    {"6 64", "R", "R64 x R64 x R64"},
    {"46 64", "-S", "x x x x x"},      {"s", "-R", "R46 R46 R64 R46 R64"},  {"s", "S", "S4 S4 S6 x x"},
    {"s", "P", "P46 P46 P64 P46 P64"},
};

TEST(families, created_on_a_cluster_of_one_family) {
  check_table(kSingle4, false, kSingleRows);
  check_table(kSingle6, true, kSingleRows);
}

TEST(families, created_on_a_cluster_of_both) { check_table(kDual4, false, kDualRows); }

TEST(families, created_on_a_cluster_of_both_with_ipv6_first) { check_table(kDual6, true, kDualRows); }

TEST(families, an_external_name_has_none) {
  Service service = service_of(ServiceType::external_name);
  EXPECT_TRUE(settle_families(service, nullptr, kDual4).empty());
  EXPECT_EQ(cell(service), "-");
}

struct Refused {
  const char* ips;
  char policy;
  const char* families;
  Families cluster;
  Texts texts;
};

TEST(families, refusals_of_a_creation_say_why) {
  const std::string policy = "spec.ipFamilyPolicy: Invalid value: ";
  const std::string two = "must be 'RequireDualStack' or 'PreferDualStack' when multiple ";
  const Refused rows[] = {
      {"46", '-', "", kDual4, {policy + "\"SingleStack\": " + two + "cluster IPs are specified"}},
      {"", 'S', "46", kDual4, {policy + "\"SingleStack\": " + two + "IP families are specified"}},
      {"",
       'R',
       "",
       kSingle4,
       {policy + "\"RequireDualStack\": this cluster is not configured for dual-stack services"}},
      {"", '-', "6", kSingle4, {"spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster"}},
      {"6",
       '-',
       "",
       kSingle4,
       {"spec.clusterIPs[0]: Invalid value: [\"fd00::5\"]: IPv6 is not configured on this cluster"}},
      {"4",
       '-',
       "6",
       kDual4,
       {"spec.clusterIPs[0]: Invalid value: \"10.0.0.5\": expected an IPv6 value as indicated by `ipFamilies[0]`"}},
      {"6",
       'P',
       "46",
       kDual4,
       {"spec.clusterIPs[0]: Invalid value: \"fd00::5\": expected an IPv4 value as indicated by `ipFamilies[0]`"}},
      {"", '-', "44", kDual4, {"spec.ipFamilies[1]: Duplicate value: \"IPv4\""}},
      {"44",
       'P',
       "",
       kDual4,
       {"spec.clusterIPs: Invalid value: [\"10.0.0.5\",\"10.0.0.5\"]: may specify no more than one IP for each IP "
        "family"}},
  };
  for (const Refused& row : rows) {
    Service service = created(row.ips, row.policy, row.families);
    normalize_cluster_ips(service, nullptr);
    EXPECT_EQ(texts(settle_families(service, nullptr, row.cluster)), row.texts) << row.ips << ' ' << row.families;
  }
}

// --- changes, on a cluster of both ---

Service stored(const std::string& families, char policy) {
  Service service = created(families, policy, families);
  apply_defaults(service);
  return service;
}

/// What a PUT that names these lists comes to: families and policy, number of addresses; or x when the families or the
/// validation after them refuse.
std::string change(const Service& before, char policy, const std::string& families, const std::string& ips,
                   const Families& cluster = kDual4) {
  Service service = created(ips, policy, families);
  apply_defaults(service);
  keep_allocated_values(service, before);
  normalize_cluster_ips(service, &before);
  if (!settle_families(service, &before, cluster).empty()) return "x";
  TestAllocators allocators(cluster);
  for (const std::string& ip : before.cluster_ips) allocators.taken.insert(ip);
  if (change_cluster_ips(service, before, allocators)) return "x";
  if (service.ip_families.size() < service.cluster_ips.size()) service.cluster_ips.resize(service.ip_families.size());
  if (!check_changed_service(service, before).empty()) return "x";
  std::string result = cell(service) + "/" + std::to_string(service.cluster_ips.size());
  for (const std::string& ip : allocators.given_back) result += " -" + ip;
  return result;
}

TEST(families, a_single_stack_service_stays_so) {
  const Service before = stored("4", 'S');
  for (const char policy : {'-', 'S'}) {
    for (const char* families : {"", "4"}) {
      for (const char* ips : {"", "4"}) EXPECT_EQ(change(before, policy, families, ips), "S4/1");
    }
    for (const char* ips : {"", "4", "46"}) EXPECT_EQ(change(before, policy, "46", ips), "x");
    EXPECT_EQ(change(before, policy, "", "46"), "x");
    EXPECT_EQ(change(before, policy, "4", "46"), "x");
  }
}

TEST(families, a_single_stack_service_is_widened) {
  const Service before = stored("4", 'S');
  for (const char policy : {'P', 'R'}) {
    for (const char* families : {"", "4", "46"}) {
      for (const char* ips : {"", "4", "46"}) {
        EXPECT_EQ(change(before, policy, families, ips), std::string(1, policy) + "46/2") << families << ' ' << ips;
      }
    }
    EXPECT_EQ(change(before, policy, "64", ""), "x");
    EXPECT_EQ(change(before, policy, "", "64"), "x");
    EXPECT_EQ(change(before, policy, "64", "64"), "x");
  }
}

TEST(families, a_second_address_in_use_is_refused) {
  const Service before = stored("4", 'S');
  Service service = created("46", 'P', "46");
  TestAllocators allocators(kDual4);
  allocators.taken = {"10.0.0.5", "fd00::5"};
  ASSERT_TRUE(settle_families(service, &before, kDual4).empty());
  const auto refusal = change_cluster_ips(service, before, allocators);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->to_string(),
            "The Service \"a\" is invalid: spec.clusterIPs: Invalid value: [\"10.0.0.5\",\"fd00::5\"]: failed to "
            "allocate IP fd00::5: provided IP is already allocated");
}

TEST(families, a_dual_stack_service_is_narrowed_by_its_policy) {
  for (const char before : {'P', 'R'}) {
    const Service old = stored("46", before);
    for (const char* families : {"", "4", "46"}) {
      for (const char* ips : {"", "4", "46"}) {
        EXPECT_EQ(change(old, 'S', families, ips), "S4/1 -fd00::5") << families << ' ' << ips;
      }
    }
  }
}

TEST(families, a_dual_stack_service_stays_so) {
  for (const char had : {'P', 'R'}) {
    const Service before = stored("46", had);
    for (const char policy : {'-', 'P', 'R'}) {
      const std::string kept = std::string(1, policy == '-' ? had : policy) + "46/2";
      for (const char* families : {"", "46"}) {
        for (const char* ips : {"", "46"}) EXPECT_EQ(change(before, policy, families, ips), kept);
      }
      for (const char* ips : {"", "4", "46"}) EXPECT_EQ(change(before, policy, "4", ips), "x");
      EXPECT_EQ(change(before, policy, "46", "4"), "x");
      EXPECT_EQ(change(before, policy, "", "4"), "x");
    }
  }
}

TEST(families, the_first_one_never_changes) {
  for (const char policy : {'S', 'P', 'R', '-'}) {
    EXPECT_EQ(change(stored("4", 'S'), policy, "6", "6"), "x");
    EXPECT_EQ(change(stored("46", 'R'), policy, "64", "64"), "x");
    EXPECT_EQ(change(stored("46", 'R'), policy, "6", "6"), "x");
  }
}

TEST(families, what_preferred_two_outlives_a_change_of_the_cluster) {
  EXPECT_EQ(change(stored("4", 'P'), 'P', "4", "4", kDual4), "P4/1");
  EXPECT_EQ(change(stored("46", 'P'), 'P', "46", "46", kSingle4), "P46/2");
}

TEST(families, reducing_a_list_needs_the_policy) {
  const Service before = stored("46", 'R');
  Service service = created("4", '-', "4");
  EXPECT_EQ(texts(settle_families(service, &before, kDual4)),
            (Texts{"spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": must be 'SingleStack' to release the "
                   "secondary cluster IP",
                   "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": must be 'SingleStack' to release the "
                   "secondary IP family"}));
}

}  // namespace
}  // namespace croft::core
