#include "vpc/format/methods.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "vpc/format/test_proto.h"

namespace croft::wire::vpc {
namespace {

TEST(VpcMethods, AreThoseOfTheProtocol) {
  const std::vector<std::string> service = lines_of("service CNIIpam");
  EXPECT_EQ(kServiceName, "rpc.CNIIpam");
  ASSERT_EQ(service.size(), kMethodCount);
  for (const Method method : all_methods()) {
    const std::string name(name_of(method));
    const std::string line = "rpc " + name + "(" + name + "Request) returns (" + name + "Response);";
    EXPECT_EQ(std::ranges::count(service, line), 1) << line;
    EXPECT_EQ(path_of(method), "/rpc.CNIIpam/" + name);
    EXPECT_EQ(method_of(path_of(method)), method);
  }
  EXPECT_EQ(name_of(Method::support_multi_subnet), "SupportMultiSubnet");
}

TEST(VpcMethods, OtherPathsAreNone) {
  for (const char* path : {"", "/", "Ping", "/rpc.CNIIpam/", "/rpc.CNIIpam/ping", "/rpc.CNIIpam/Ping/", "/x/Ping"}) {
    EXPECT_FALSE(method_of(path)) << path;
  }
}

TEST(VpcMethods, CodesAreThoseOfTheProtocol) {
  for (const std::string& line : lines_of("enum CNIErrorCode")) {
    const std::size_t equals = line.find(" = ");
    EXPECT_EQ(name_of(static_cast<CniCode>(std::stoi(line.substr(equals + 3)))), line.substr(0, equals));
  }
  EXPECT_EQ(name_of(static_cast<CniCode>(7)), "unknown code");
}

// docs/notes/warm-pool.md#grpc-errors, row by row.
TEST(VpcMethods, FailuresAreAnsweredAsDocumented) {
  const auto answered = [](Method method, Failure failure) {
    const auto answer = answer_of(method, failure);
    return answer ? std::pair{static_cast<int>(answer->code), static_cast<int>(answer->status)} : std::pair{-1, -1};
  };
  constexpr int kInternal = 13, kInvalidArgument = 3;
  EXPECT_EQ(answered(Method::add_pod_network, Failure::pod_unreadable), (std::pair{1012, kInternal}));
  EXPECT_EQ(answered(Method::add_pod_network, Failure::no_address), (std::pair{1002, kInternal}));
  EXPECT_EQ(answered(Method::add_pod_network, Failure::own_interface), (std::pair{1008, kInternal}));
  EXPECT_EQ(answered(Method::del_pod_network, Failure::nothing_named), (std::pair{0, 0}));
  EXPECT_EQ(answered(Method::del_pod_network, Failure::own_interface), (std::pair{1009, kInvalidArgument}));
  EXPECT_EQ(answered(Method::del_pod_network, Failure::not_released), (std::pair{1003, kInternal}));
  EXPECT_EQ(answered(Method::add_pod_network_record, Failure::record_not_written), (std::pair{1013, kInternal}));
  EXPECT_EQ(answered(Method::del_pod_network_record, Failure::record_not_written), (std::pair{1013, kInternal}));
  EXPECT_EQ(answered(Method::get_pod_network_record, Failure::record_unreadable), (std::pair{1014, kInternal}));
  EXPECT_EQ(answered(Method::get_pod_network_record, Failure::record_absent), (std::pair{0, 0}));
  EXPECT_EQ(answered(Method::list_pod_network_record, Failure::record_unreadable), (std::pair{1014, kInternal}));
  EXPECT_EQ(answered(Method::borrow_ip, Failure::missing_parameter), (std::pair{1001, kInvalidArgument}));
  EXPECT_EQ(answered(Method::borrow_ip, Failure::not_lent), (std::pair{1015, kInternal}));
  EXPECT_EQ(answered(Method::describe_pool, Failure::stock_unreadable), (std::pair{1014, kInternal}));
  EXPECT_EQ(answered(Method::push_pool, Failure::cloud_failed), (std::pair{1012, kInternal}));
  EXPECT_EQ(answered(Method::push_pool, Failure::stock_not_written), (std::pair{1013, kInternal}));
  EXPECT_EQ(answered(Method::pop_pool, Failure::not_in_stock), (std::pair{1014, kInternal}));
  EXPECT_EQ(answered(Method::pop_pool, Failure::not_given_back), (std::pair{1003, kInternal}));
  EXPECT_EQ(answered(Method::list_unuse, Failure::cloud_failed), (std::pair{1012, kInternal}));
  EXPECT_EQ(answered(Method::list_unuse, Failure::stock_unreadable), (std::pair{1014, kInternal}));
  EXPECT_EQ(answered(Method::release_ip, Failure::in_use), (std::pair{1009, kInternal}));
  EXPECT_EQ(failure_answers().size(), 21U) << "a new row wants a line above";
  EXPECT_EQ(answered(Method::ping, Failure::no_address), (std::pair{-1, -1}));

  std::set<std::pair<Method, Failure>> seen;
  for (const FailureAnswer& answer : failure_answers()) {
    EXPECT_TRUE(seen.insert({answer.method, answer.failure}).second) << "two rows of " << name_of(answer.method);
  }
}

}  // namespace
}  // namespace croft::wire::vpc
