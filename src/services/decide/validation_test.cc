#include "services/decide/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/decide/names.h"
#include "services/decide/test_service.h"
#include "services/decide/type_changes.h"

namespace croft::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Texts = std::vector<std::string>;

/// Complete, as it is after the allocation.
Service valid(ServiceType type = ServiceType::cluster_ip) {
  Service service = service_of(type);
  apply_defaults(service);
  if (type == ServiceType::external_name) {
    service.external_name = "db.example.com.";
    return service;
  }
  service.cluster_ip = "10.0.0.5";
  service.cluster_ips = {"10.0.0.5"};
  service.ip_families = {net::Family::v4};
  service.ip_family_policy = IpFamilyPolicy::single_stack;
  return service;
}

Service headless() {
  Service service = valid();
  service.cluster_ip = "None";
  service.cluster_ips = {"None"};
  return service;
}

struct ChangeRow {
  const char* what;
  std::function<void(Service&)> change;
  Texts texts;
};

void check(const Service& base, std::initializer_list<ChangeRow> rows) {
  ASSERT_THAT(texts(check_new_service(base)), IsEmpty());
  for (const ChangeRow& row : rows) {
    Service service = base;
    row.change(service);
    EXPECT_EQ(texts(check_new_service(service)), row.texts) << row.what;
  }
}

TEST(validation, every_type_can_be_valid) {
  for (const auto type :
       {ServiceType::cluster_ip, ServiceType::node_port, ServiceType::load_balancer, ServiceType::external_name}) {
    EXPECT_THAT(texts(check_new_service(valid(type))), IsEmpty()) << word_of(type);
  }
  EXPECT_THAT(texts(check_new_service(headless())), IsEmpty());
  Service portless = headless();
  portless.ports.clear();
  EXPECT_THAT(texts(check_new_service(portless)), IsEmpty());
}

TEST(validation, names) {
  const std::string rfc1035 =
      "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
      "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
      "'[a-z]([-a-z0-9]*[a-z0-9])?')";
  check(
      valid(),
      {{"empty",
        [](Service& s) { s.name.name.clear(); },
        {"metadata.name: Required value: name or generateName is required"}},
       {"a digit first", [](Service& s) { s.name.name = "9a"; }, {"metadata.name: Invalid value: \"9a\": " + rfc1035}},
       {"upper case", [](Service& s) { s.name.name = "A"; }, {"metadata.name: Invalid value: \"A\": " + rfc1035}},
       {"too long",
        [](Service& s) { s.name.name = std::string(64, 'a'); },
        {"metadata.name: Invalid value: \"" + std::string(64, 'a') + "\": must be no more than 63 characters"}},
       {"no namespace", [](Service& s) { s.name.name_space.clear(); }, {"metadata.namespace: Required value"}},
       {"a namespace with dots",
        [](Service& s) { s.name.name_space = "a.b"; },
        {"metadata.namespace: Invalid value: \"a.b\": must not contain dots"}}});
}

TEST(validation, ports) {
  const std::string range = "must be between 1 and 65535, inclusive";
  check(valid(),
        {{"none", [](Service& s) { s.ports.clear(); }, {"spec.ports: Required value"}},
         {"0", [](Service& s) { s.ports[0].port = 0; }, {"spec.ports[0].port: Invalid value: 0: " + range}},
         {"target",
          [](Service& s) { s.ports[0].target_port = "70000"; },
          {"spec.ports[0].targetPort: Invalid value: 70000: " + range}},
         {"target far off",
          [](Service& s) { s.ports[0].target_port = "99999999999999"; },
          {"spec.ports[0].targetPort: Invalid value: 99999999999999: " + range}},
         {"target name",
          [](Service& s) { s.ports[0].target_port = "a--b"; },
          {"spec.ports[0].targetPort: Invalid value: \"a--b\": must not contain consecutive hyphens"}},
         {"names",
          [](Service& s) {
            s.ports = {port_of("", kTcp, 80), port_of("b", kTcp, 81), port_of("b", kTcp, 82)};
          },
          {"spec.ports[0].name: Required value", "spec.ports[2].name: Duplicate value: \"b\""}},
         {"the same twice",
          [](Service& s) {
            s.ports = {port_of("a", kTcp, 80), port_of("b", kTcp, 80)};
          },
          {"spec.ports[1]: Duplicate value: "
           R"({"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0})"}},
         {"node port",
          [](Service& s) { s.ports[0].node_port = 30080; },
          {"spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"}},
         {"protocol",
          [](Service& s) { s.ports[0].app_protocol = "a/b/c"; },
          {"spec.ports[0].appProtocol: Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric "
           "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
           "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an "
           "optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"}},
         {"too many",
          [](Service& s) { s.ports.resize(2001); },
          {"spec.ports: Invalid value: 2001: must have at most 2000 items"}}});
  check(valid(ServiceType::node_port),
        {{"the same number",
          [](Service& s) {
            s.ports = {port_of("a", kTcp, 80, 30080), port_of("b", kTcp, 81, 30080)};
          },
          {"spec.ports[1].nodePort: Duplicate value: 30080"}},
         {"the same number of other protocols",
          [](Service& s) {
            s.ports = {port_of("a", kTcp, 80, 30080), port_of("b", ServiceProtocol::udp, 81, 30080)};
          },
          {}}});
}

TEST(validation, addresses) {  // [S6]
  const auto ips = [](std::vector<std::string> list) {
    return [list](Service& s) {
      s.cluster_ips = list;
      s.cluster_ip = list.front();
    };
  };
  check(valid(),
        {{"the first is another",
          [](Service& s) { s.cluster_ip = "10.0.0.6"; },
          {"spec.clusterIPs: Invalid value: [\"10.0.0.5\"]: first value must match `clusterIP`"}},
         {"no singular",
          [](Service& s) { s.cluster_ip.clear(); },
          {"spec.clusterIPs: Invalid value: [\"10.0.0.5\"]: must be empty when `clusterIP` is not specified"}},
         {"no plural", [](Service& s) { s.cluster_ips.clear(); }, {"spec.clusterIPs: Required value"}},
         {"None and more",
          ips({"None", "10.0.0.5"}),
          {"spec.clusterIPs: Invalid value: [\"None\",\"10.0.0.5\"]: 'None' must be the first and only value"}},
         {"no address",
          ips({"x"}),
          {"spec.clusterIPs[0]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or "
           "2001:db8::ffff)"}},
         {"None in second place",
          ips({"10.0.0.5", "None"}),
          {"spec.clusterIPs[1]: Invalid value: \"None\": must be a valid IP address, (e.g. 10.9.8.7 or "
           "2001:db8::ffff)"}},
         {"IPv4 in IPv6",
          ips({"::ffff:10.0.0.5"}),
          {"spec.clusterIPs[0]: Invalid value: \"::ffff:10.0.0.5\": must not be an IPv4-mapped IPv6 address"}},
         {"three",
          ips({"10.0.0.5", "fd00::5", "fd00::6"}),
          {"spec.clusterIPs: Invalid value: [\"10.0.0.5\",\"fd00::5\",\"fd00::6\"]: may only hold up to 2 values"}},
         {"two of a family",
          ips({"10.0.0.5", "10.0.0.6"}),
          {"spec.clusterIPs: Invalid value: [\"10.0.0.5\",\"10.0.0.6\"]: may specify no more than one IP for each IP "
           "family"}},
         {"of the other family",
          ips({"fd00::5"}),
          {"spec.clusterIPs[0]: Invalid value: \"fd00::5\": expected an IPv4 value as indicated by "
           "`ipFamilies[0]`"}}});
}

TEST(validation, of_one_type_only) {
  const auto lb = "may only be used when `type` is 'LoadBalancer'";
  check(valid(), {{"class",
                   [](Service& s) { s.load_balancer_class = "a"; },
                   {std::string("spec.loadBalancerClass: Forbidden: ") + lb}},
                  {"allocate",
                   [](Service& s) { s.allocate_load_balancer_node_ports = false; },
                   {std::string("spec.allocateLoadBalancerNodePorts: Forbidden: ") + lb}},
                  {"policy",
                   [](Service& s) { s.external_traffic_policy_given = true; },
                   {"spec.externalTrafficPolicy: Invalid value: \"Cluster\": may only be set for externally-accessible "
                    "services"}},
                  {"health check",
                   [](Service& s) { s.health_check_node_port = 30001; },
                   {"spec.healthCheckNodePort: Invalid value: 30001: may only be set when `type` is 'LoadBalancer' and "
                    "`externalTrafficPolicy` is 'Local'"}}});
  check(headless(),
        {{"node port",
          [](Service& s) { s.type = ServiceType::node_port; },
          {"spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"}}});
  check(valid(ServiceType::external_name),
        {{"address",
          [](Service& s) { s.cluster_ips = {"10.0.0.5"}; },
          {"spec.clusterIPs: Forbidden: may not be set for ExternalName services"}},
         {"families",
          [](Service& s) {
            s.ip_families = {net::Family::v4};
            s.ip_family_policy = IpFamilyPolicy::single_stack;
          },
          {"spec.ipFamilies: Forbidden: may not be set for ExternalName services",
           "spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services"}},
         {"no name", [](Service& s) { s.external_name.clear(); }, {"spec.externalName: Required value"}},
         {"no ports", [](Service& s) { s.ports.clear(); }, {}},
         {"node port", [](Service& s) { s.ports[0].node_port = 30080; }, {}}});
}

TEST(validation, labels) {
  check(valid(), {{"a value",
                   [](Service& s) {
                     s.selector = {{"app", "-"}};
                   },
                   {"spec.selector: Invalid value: \"-\": a valid label must be an empty string or consist of "
                    "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
                    "(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"}},
                  {"a key",
                   [](Service& s) {
                     s.labels = {{"/a", "b"}};
                   },
                   {"metadata.labels: Invalid value: \"/a\": prefix part must be non-empty"}},
                  {"fine",
                   [](Service& s) {
                     s.labels = {{"example.com/a", ""}, {"b", "c.d_e-f"}};
                   },
                   {}}});
}

// --- changes ---

Texts changed(const Service& before, const std::function<void(Service&)>& change) {
  Service service = before;
  change(service);
  return texts(check_changed_service(service, before));
}

TEST(validation, addresses_stay) {
  const Service before = valid();
  EXPECT_THAT(changed(before,
                      [](Service& s) {
                        s.cluster_ip = "10.0.0.6";
                        s.cluster_ips = {"10.0.0.6"};
                      }),
              ElementsAre("spec.clusterIPs[0]: Invalid value: [\"10.0.0.6\"]: may not change once set"));
  EXPECT_THAT(changed(before,
                      [](Service& s) {
                        s.cluster_ip.clear();
                        s.cluster_ips.clear();
                      }),
              ElementsAre("spec.clusterIPs[0]: Invalid value: null: primary clusterIP can not be unset"));
  EXPECT_THAT(changed(before,
                      [](Service& s) {
                        s.cluster_ip = "None";
                        s.cluster_ips = {"None"};
                      }),  // [S15]
              ElementsAre("spec.clusterIPs[0]: Invalid value: [\"None\"]: may not change once set"));
  EXPECT_THAT(
      changed(headless(), [](Service& s) { s.type = ServiceType::node_port; }),  // [S15]
      ElementsAre("spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"));
}

TEST(validation, the_second_address_goes_by_the_policy) {  // [S11]
  Service before = valid();
  before.cluster_ips = {"10.0.0.5", "fd00::5"};
  before.ip_families = {net::Family::v4, net::Family::v6};
  before.ip_family_policy = IpFamilyPolicy::prefer_dual_stack;
  const auto narrow = [](Service& s) {
    s.cluster_ips.resize(1);
    s.ip_families.resize(1);
  };
  EXPECT_THAT(changed(before, narrow),
              ElementsAre("spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be set to 'SingleStack' when "
                          "releasing the secondary clusterIP",
                          "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be set to 'SingleStack' when "
                          "releasing the secondary ipFamily"));
  EXPECT_THAT(changed(before,
                      [&](Service& s) {
                        narrow(s);
                        s.ip_family_policy = IpFamilyPolicy::single_stack;
                      }),
              IsEmpty());
  EXPECT_THAT(changed(before, [](Service& s) { s.cluster_ips[1] = "fd00::6"; }),
              ElementsAre("spec.clusterIPs[1]: Invalid value: [\"10.0.0.5\",\"fd00::6\"]: may not change once set"));
}

TEST(validation, what_is_immutable_of_a_load_balancer) {  // [S12]
  Service before = valid(ServiceType::load_balancer);
  before.external_traffic_policy = TrafficPolicy::local;
  before.health_check_node_port = 30118;
  before.load_balancer_class = "a";
  EXPECT_THAT(changed(before, [](Service& s) { s.health_check_node_port = 30119; }),
              ElementsAre("spec.healthCheckNodePort: Forbidden: field is immutable"));
  EXPECT_THAT(changed(before, [](Service& s) { s.load_balancer_class.reset(); }),
              ElementsAre("spec.loadBalancerClass: Invalid value: null: may not change once set"));
}

TEST(refusals, are_printed_as_kubectl_does) {
  const Service service = valid();
  const FieldErrors two{required("spec.ports"), invalid("spec.clusterIPs", "[\"x\"]", "no"), required("spec.ports")};
  EXPECT_EQ(
      refuse_invalid(service, two).to_string(),
      "The Service \"a\" is invalid: \n* spec.ports: Required value\n* spec.clusterIPs: Invalid value: [\"x\"]: no");
  EXPECT_EQ(refuse_not_found({"n", "a"}).to_string(), "Error from server (NotFound): services \"a\" not found");
  EXPECT_EQ(refuse_existing({"n", "a"}).to_string(),
            "Error from server (AlreadyExists): services \"a\" already exists");
  EXPECT_EQ(refuse_stale({"n", "a"}).to_string(),
            "Error from server (Conflict): Operation cannot be fulfilled on services \"a\": the object has been "
            "modified; please apply your changes to the latest version and try again");
}

}  // namespace
}  // namespace croft::core
