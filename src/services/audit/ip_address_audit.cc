#include "services/audit/ip_address_audit.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "base/net/lenient.h"
#include "services/decide/mapped_range.h"
#include "services/decide/service_words.h"

namespace croft::core::audit {
namespace {

using Type = RepairFinding::Type;

constexpr const char* kFamilyLabel = "ipaddress.kubernetes.io/ip-family";
constexpr const char* kManagedByLabel = "ipaddress.kubernetes.io/managed-by";
constexpr const char* kManager = "ipallocator.k8s.io";
constexpr std::string_view kServices = "services";

[[nodiscard]] bool refers_to_service(const IpAddressObject& object) {
  return object.parent_group.empty() && object.parent_resource == kServices;
}

[[nodiscard]] bool is_managed(const IpAddressObject& object) {
  const auto label = object.labels.find(kManagedByLabel);
  return label != object.labels.end() && label->second == kManager;
}

[[nodiscard]] bool has_labels(const IpAddressObject& object, const net::Address& address) {
  const auto family = object.labels.find(kFamilyLabel);
  return is_managed(object) && family != object.labels.end() && family->second == word_of(address.family());
}

[[nodiscard]] bool lists(const ServiceUse& service, const net::Address& address) {
  return std::ranges::any_of(service.cluster_ips,
                             [&](const std::string& text) { return net::parse_address_leniently(text) == address; });
}

[[nodiscard]] std::uint64_t size_of(const net::Prefix& cidr) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  const int bits = (cidr.address().is_v4() ? 32 : 128) - cidr.length();
  const std::uint64_t left_out = cidr.address().is_v4() ? 2 : 1;
  if (bits >= 64) return kMax;
  const std::uint64_t all = std::uint64_t{1} << bits;
  return all > left_out ? all - left_out : 0;
}

class Audit {
 public:
  Audit(std::span<const IpAddressObject> objects, std::span<const ServiceCidrObject> cidrs,
        std::span<const ServiceUse> services, WallTime now, const LeakedFor& leaked_for)
      : objects_(objects), services_(services), now_(now), leaked_for_(leaked_for) {
    for (const ServiceCidrObject& object : cidrs) {
      for (const net::Prefix& cidr : object.cidrs) add_cidr(object.name, cidr);
    }
    by_address_.reserve(objects.size());
    for (const IpAddressObject& object : objects) {
      by_address_.emplace(object.address, &object);
      count(object);
    }
    for (const ServiceUse& service : services) {
      if (!service.beside_kubernetes) by_name_.emplace(service.name, &service);
    }
  }

  [[nodiscard]] IpAddressAudit run() {
    for (const ServiceUse& service : services_) {
      for (const std::string& text : service.cluster_ips) look_at(service, text);
    }
    for (const IpAddressObject& object : objects_) look_at(object);
    return std::move(result_);
  }

 private:
  void add_cidr(const std::string& name, const net::Prefix& cidr) {
    ServiceCidrUse use{name, cidr, {}, {}};
    const std::uint64_t size = size_of(cidr);
    use.in_static.size = std::min<std::uint64_t>(service::service_band(cidr), size);
    use.in_dynamic.size = size - use.in_static.size;
    result_.cidrs.push_back(std::move(use));
  }

  void count(const IpAddressObject& object) {
    const auto address = net::parse_address_leniently(object.address);
    if (!address) return;
    for (ServiceCidrUse& use : result_.cidrs) {
      if (!is_service_address(use.cidr, *address)) continue;
      const auto place = address->value() - use.cidr.address().value();
      ++(place > net::U128{use.in_static.size} ? use.in_dynamic : use.in_static).used;
    }
  }

  void add(Type type, std::string_view reason, std::string value, const ServiceName* service, bool mended,
           std::string message, std::string_view action = "ClusterIPAllocation") {
    result_.findings.push_back({type, reason, action, std::string(kIpAddresses), std::move(value),
                                service != nullptr ? std::optional(*service) : std::nullopt, std::move(message),
                                mended});
  }

  void mend(const net::Address& address, const ServiceName& service, bool remove) {
    result_.mends.push_back({address.to_string(), remove, ip_address_for(address, service), service});
    mended_.insert(address.to_string());
  }

  void look_at(const ServiceUse& service, const std::string& text) {
    const auto parsed = net::parse_address_leniently(text);
    if (!parsed) {
      if (unreadable_ == nullptr) unreadable_ = &service.name;
      add(Type::invalid, "ClusterIPNotValid", text, &service.name, false,
          fmt::format("Cluster IP {} is not a valid IP; please recreate service", net::echo(text)),
          "ClusterIPValidation");
      return;
    }
    const net::Address& address = *parsed;
    const std::string name = address.to_string();
    const std::string_view family = word_of(address.family());
    const bool is_inside = std::ranges::any_of(
        result_.cidrs, [&](const ServiceCidrUse& use) { return is_service_address(use.cidr, address); });
    if (!is_inside) {
      add(Type::out_of_range, "ClusterIPOutOfRange", name, &service.name, false,
          fmt::format("Cluster IP [{}]: {} is not within any configured Service CIDR; please recreate service", family,
                      name));
      return;
    }
    const auto duplicate = [&] {
      add(Type::duplicate, "ClusterIPAlreadyAllocated", name, &service.name, false,
          fmt::format("Cluster IP [{}]:{} was assigned to multiple services; please recreate service", family, name));
    };
    if (mended_.contains(name)) return duplicate();
    const auto found = by_address_.find(name);
    if (service.beside_kubernetes) {
      if (found != by_address_.end()) return duplicate();
      add(Type::invalid, "ClusterIPNotAllocated", name, &service.name, false,
          fmt::format("Cluster IP [{}]: {} of Croft's own Service has no IPAddress, and Kubernetes may give it to "
                      "another; please recreate service in Kubernetes",
                      family, name));
      return;
    }
    if (found == by_address_.end()) {
      add(Type::repair, "ClusterIPNotAllocated", name, &service.name, true,
          fmt::format("Cluster IP [{}]: {} is not allocated; repairing", family, name));
      mend(address, service.name, false);
      return;
    }
    const IpAddressObject& object = *found->second;
    const auto parent = by_name_.find(object.parent);
    if (!refers_to_service(object) || parent == by_name_.end()) {
      add(Type::repair, "ClusterIPNotAllocated", name, &service.name, true,
          fmt::format("the ClusterIP [{}]: {} for Service {} has a wrong reference; repairing", family, name,
                      service.name.to_string()));
      mend(address, service.name, true);
    } else if (parent->second->name != service.name) {
      if (lists(*parent->second, address)) return duplicate();
      claimed_.emplace(name, &service);
    } else if (!has_labels(object, address)) {
      add(Type::repair, "IPAddressWrongLabels", name, &service.name, true,
          fmt::format("the IPAddress {} for Service {} has wrong labels; repairing", name, service.name.to_string()),
          "IPAddressAllocation");
      mend(address, service.name, true);
    }
  }

  void remove(const IpAddressObject& object, const ServiceName* rests_on) {
    IpAddressMend mend{object.address, true, std::nullopt,
                       rests_on != nullptr ? std::optional(*rests_on) : std::nullopt};
    // Where the address is another Service's, that one gets it at once.
    if (const auto claimed = claimed_.find(object.address); claimed != claimed_.end()) {
      mend.make = ip_address_for(*net::parse_address_leniently(object.address), claimed->second->name);
      mend.service = claimed->second->name;
    }
    result_.mends.push_back(std::move(mend));
  }

  void look_at(const IpAddressObject& object) {
    if (!is_managed(object) || mended_.contains(object.address)) return;
    const auto leaked = [&](std::string_view reason, std::string_view what, const ServiceName* rests_on) {
      const auto seen = leaked_for_.find(object.address);
      const bool is_freed = unreadable_ == nullptr && seen != leaked_for_.end() && seen->second >= kIpAddressLeakAge;
      result_.leaked.push_back(object.address);
      add(Type::leak, reason, object.address, nullptr, is_freed,
          unreadable_ != nullptr
              ? fmt::format("{}: kept, as the address of Service {} can't be read and may be this one", what,
                            unreadable_->to_string())
              : fmt::format("{}{}", what, is_freed ? ": cleaning up" : ": flagging for later clean up"),
          "IPAddressAllocation");
      if (is_freed) return remove(object, rests_on);
      ++result_.to_be_seen_again;
    };
    if (!refers_to_service(object)) {
      return leaked("IPAddressNotAllocated",
                    fmt::format("IPAddress: {} does not refer to a Service", net::echo(object.address)), nullptr);
    }
    const auto age = now_ - object.created;
    const auto about = [&] {
      return fmt::format("IPAddress: {} for Service {}", net::echo(object.address), object.parent.to_string());
    };
    const auto parent = by_name_.find(object.parent);
    if (parent == by_name_.end()) {
      if (age < kIpAddressLeakAge) {
        ++result_.waiting;
        return;
      }
      return leaked("IPAddressNotAllocated", about() + " appears to have leaked", &object.parent);
    }
    const ServiceUse& service = *parent->second;
    const auto address = net::parse_address_leniently(object.address);
    if (address && lists(service, *address)) return;
    const bool is_young = (service.type == ServiceType::external_name && age < kIpAddressLeakAge) ||
                          (object.created > service.created && age < kIpAddressYoungAge);
    if (is_young) {
      ++result_.waiting;
      return;
    }
    leaked("IPAddressWrongReference", about() + " has a wrong reference", &object.parent);
  }

  std::span<const IpAddressObject> objects_;
  std::span<const ServiceUse> services_;
  const WallTime now_;
  const LeakedFor& leaked_for_;
  std::unordered_map<std::string, const IpAddressObject*> by_address_;
  std::map<ServiceName, const ServiceUse*> by_name_;
  std::unordered_set<std::string> mended_;
  const ServiceName* unreadable_ = nullptr;  ///< the first Service whose address can't be read: no object is removed
  std::unordered_map<std::string, const ServiceUse*> claimed_;  ///< objects that refer to a Service without the address
  IpAddressAudit result_;
};

}  // namespace

bool is_service_address(const net::Prefix& cidr, const net::Address& address) {
  if (!cidr.contains(address) || address == cidr.first()) return false;
  return !address.is_v4() || address != cidr.last();
}

IpAddressObject ip_address_for(const net::Address& address, const ServiceName& service) {
  IpAddressObject object;
  object.address = address.to_string();
  object.labels = {{kFamilyLabel, std::string(word_of(address.family()))}, {kManagedByLabel, kManager}};
  object.parent_resource = kServices;
  object.parent = service;
  return object;
}

IpAddressAudit audit_ip_addresses(std::span<const IpAddressObject> objects, std::span<const ServiceCidrObject> cidrs,
                                  std::span<const ServiceUse> services, WallTime now, const LeakedFor& leaked_for) {
  return Audit(objects, cidrs, services, now, leaked_for).run();
}

}  // namespace croft::core::audit
