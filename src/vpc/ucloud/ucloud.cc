#include "vpc/ucloud/ucloud.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "vpc/format/ucloud/answers.h"
#include "vpc/format/ucloud/requests.h"
#include "vpc/ucloud/credentials.h"

namespace croft::cloud::ucloud {

namespace {

std::chrono::nanoseconds between(double per_second) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 / per_second));
}

}  // namespace

void Limiter::recover(const Instant& now) {
  const double seconds = std::chrono::duration<double>(now.since_boot - looked_at_).count();
  looked_at_ = now.since_boot;
  if (seconds > 0) current_ = std::min(rate_.per_second, current_ + seconds * rate_.recovery_per_second);
}

std::optional<std::chrono::nanoseconds> Limiter::take(const Instant& now, Deadline deadline) {
  if (rate_.per_second <= 0) return std::chrono::nanoseconds{0};
  const std::lock_guard lock(mutex_);
  recover(now);
  const auto turn = std::max(next_, now.since_boot);
  if (turn >= deadline.at_since_boot) return std::nullopt;
  next_ = turn + between(current_);
  return turn - now.since_boot;
}

void Limiter::refused(const Instant& now) {
  if (rate_.per_second <= 0) return;
  const std::lock_guard lock(mutex_);
  recover(now);
  if (refused_at_ && now.since_boot - *refused_at_ < between(current_)) return;
  refused_at_ = now.since_boot;
  current_ = std::max(std::min(rate_.least_per_second, rate_.per_second), current_ / 2);
  next_ = std::max(next_, now.since_boot + between(current_));
}

double Limiter::per_second(const Instant& now) {
  const std::lock_guard lock(mutex_);
  recover(now);
  return current_;
}

namespace {

namespace wu = wire::ucloud;
using Verdict = wu::Verdict;

class Ucloud final : public Provider {
 public:
  Ucloud(Options options, const Clock& clock)
      : options_(std::move(options)),
        clock_(clock),
        api_(options_.api, options_.http, clock),
        metadata_(options_.metadata, options_.http, clock),
        credentials_(metadata_, std::string(wu::kCredentialsPath) + options_.role, options_.keys, clock) {}

  [[nodiscard]] std::string name() const override { return "ucloud"; }
  [[nodiscard]] std::uint64_t throttled() const override { return throttled_; }
  void on_call(std::function<void(const Call&)> tell) override { tell_ = std::move(tell); }

  [[nodiscard]] Result<Interface> interface(Deadline deadline) override {
    TRY(Interface found, find_interface(deadline));
    const std::lock_guard lock(mutex_);
    interface_ = found;
    return found;
  }

  [[nodiscard]] Result<std::vector<CloudAddress>> allocate(const Interface& to, const std::string& subnet,
                                                           std::uint32_t count, Deadline deadline) override {
    if (count == 0) return fail(invalid_argument("allocate: a count of 0"));
    std::vector<CloudAddress> given;
    while (given.size() < count) {
      const auto left = static_cast<std::uint32_t>(count - given.size());
      const std::size_t before = given.size();
      const std::uint32_t asked = std::min(left, std::max<std::uint32_t>(options_.batch_max, 1));
      auto result = asked == 1 ? allocate_one(to, subnet, {}, deadline, given)
                               : allocate_batch(to, subnet, asked, deadline, given);
      if (!result) {
        // Addresses that were given before are the caller's; but those that nobody knows of must be told.
        if (given.empty() || result.error().code == ErrorCode::unknown_outcome) return fail(std::move(result).error());
        return given;
      }
      if (given.size() - before < asked) return given;
    }
    return given;
  }

  [[nodiscard]] Result<CloudAddress> allocate_this(const Interface& to, const std::string& subnet,
                                                   const net::Address& address, Deadline deadline) override {
    std::vector<CloudAddress> given;
    bool said_no = false;
    const auto result = allocate_one(to, subnet, address, deadline, given, &said_no);
    if (result) {
      if (given.front().address == address) return given.front();
      return fail(ErrorCode::unknown_outcome, fmt::format("AllocateSecondaryIp: {} was asked for, {} came",
                                                          address.to_string(), given.front().address.to_string()));
    }
    if (!said_no) return fail(result.error());
    // A code that is not known: who has it says what it meant.
    const auto holder = describe_this(to.vpc, subnet, address, deadline);
    if (!holder || !*holder) return fail(result.error());
    if ((*holder)->mac == to.mac) return **holder;
    return fail(ErrorCode::already_exists,
                fmt::format("{} belongs to {}", address.to_string(), (*holder)->mac.to_string()));
  }

  [[nodiscard]] Result<void> release(const CloudAddress& address, Deadline deadline) override {
    const Interface own = known();
    const wu::Target of{own.zone, address.vpc, address.subnet, address.mac, address.object};
    auto answer = write(wu::delete_request(scope(own), of, address.address), deadline);
    if (!answer && answer.error().code != ErrorCode::not_found) return fail(std::move(answer).error());
    return {};
  }

  [[nodiscard]] Result<void> move(const CloudAddress& address, const net::Mac& to, Deadline deadline) override {
    bool said_no = false;
    auto answer =
        write(wu::move_request(scope(known()), address.subnet, address.address, address.mac, to), deadline, &said_no);
    if (answer) return {};
    if (!said_no) return fail(std::move(answer).error());
    const auto holder = describe_this(address.vpc, address.subnet, address.address, deadline);
    if (!holder) return fail(std::move(answer).error());
    if (*holder && (*holder)->mac == to) return {};
    if (*holder && (*holder)->mac == address.mac) {
      return fail(ErrorCode::refused_by_configuration, std::move(answer).error().message);
    }
    return fail(ErrorCode::not_found, std::move(answer).error().message);
  }

  [[nodiscard]] Result<std::vector<CloudAddress>> describe(const Interface& of, const std::string& subnet,
                                                           Deadline deadline) override {
    auto found = list(of.vpc, subnet, of.mac, {}, deadline);
    if (!found && found.error().code == ErrorCode::not_found) return std::vector<CloudAddress>();
    return found;
  }

  [[nodiscard]] Result<std::optional<CloudAddress>> describe_this(const std::string& vpc, const std::string& subnet,
                                                                  const net::Address& address,
                                                                  Deadline deadline) override {
    auto found = list(vpc, subnet, {}, address, deadline);
    if (!found && found.error().code == ErrorCode::not_found) return std::optional<CloudAddress>();
    if (!found) return fail(std::move(found).error());
    if (found->empty()) return std::optional<CloudAddress>();
    return std::optional(found->front());
  }

  [[nodiscard]] Result<SubnetState> subnet(const std::string& vpc, const std::string& subnet,
                                           Deadline deadline) override {
    TRY(const wu::SubnetInfo info, subnet_info(vpc, subnet, deadline));
    return SubnetState{info.subnet, info.available, info.range, info.gateway};
  }

 private:
  [[nodiscard]] Result<Interface> find_interface(Deadline deadline) {
    const auto started = clock_.now();
    auto response = metadata_.call({"GET", std::string(wu::kMetadataPath), {}, {}}, within(deadline));
    Result<wu::Metadata> metadata = fail(ErrorCode::internal, "");
    if (!response) {
      Error error = std::move(response).error();
      // A read: whether it came does not matter.
      if (error.code == ErrorCode::unknown_outcome) error.code = ErrorCode::unavailable;
      metadata = fail(std::move(error));
    } else if (response->status != 200) {
      const bool passes = response->status >= 500;
      metadata =
          fail(passes ? ErrorCode::unavailable : ErrorCode::refused_by_configuration,
               fmt::format("{}{} answers HTTP {}{}", options_.metadata.text(), wu::kMetadataPath, response->status,
                           passes ? ""
                                  : ". Is this a machine of UCloud's? If its metadata are elsewhere, say where "
                                    "(--metadata, in a network configuration \"metadata\")"));
    } else {
      metadata = wu::decode_metadata(response->body);
      if (!metadata) metadata = fail(ErrorCode::internal, metadata.error().message);
    }
    tell("metadata", started, metadata ? "ok" : name_of(metadata.error().code));
    if (!metadata) return fail(metadata.error().in("metadata"));
    const auto either = [](const std::string& said, const std::string& given) { return said.empty() ? given : said; };
    Interface found{metadata->mac,
                    metadata->instance,
                    either(metadata->vpc, options_.vpc),
                    either(metadata->subnet, options_.subnet),
                    metadata->zone,
                    either(metadata->region, options_.region),
                    either(metadata->project, options_.project),
                    metadata->instance};
    for (const auto& [value, what, variable] :
         {std::tuple(&found.region, "region", "UCLOUD_REGION_ID"), std::tuple(&found.vpc, "VPC", "UCLOUD_VPC_ID"),
          std::tuple(&found.subnet, "subnet", "UCLOUD_SUBNET_ID")}) {
      if (value->empty()) {
        return fail(ErrorCode::refused_by_configuration,
                    fmt::format("metadata: they do not say the {}: set {}", what, variable));
      }
    }
    if (metadata->is_bare_metal || found.instance.empty()) return found;
    {
      // The same as before: then its object is too.
      const std::lock_guard lock(mutex_);
      if (interface_) {
        Interface known = *interface_;
        known.object = found.object;
        if (known == found) return *interface_;
      }
    }
    // docs/notes/warm-pool.md#ucloud-api: the interface is the object, where the API tells it.
    const auto answer = read(wu::describe_host_request(scope(found), found.instance), deadline);
    if (!answer) {
      if (answer.error().code == ErrorCode::not_found) return found;
      return fail(answer.error());
    }
    const auto interfaces = wu::decode_host_interfaces(*answer);
    if (!interfaces) return fail(ErrorCode::internal, interfaces.error().in("DescribeUHostInstance").message);
    for (const wu::HostInterface& one : *interfaces) {
      if (!one.id.empty() && one.mac == found.mac) found.object = one.id;
    }
    return found;
  }

  /// The own interface, as far as it is known; without one, the given names.
  Interface known() {
    const std::lock_guard lock(mutex_);
    if (interface_) return *interface_;
    Interface given;
    given.region = options_.region;
    given.project = options_.project;
    return given;
  }

  static wu::Scope scope(const Interface& of) { return {of.region, of.project}; }

  static CloudAddress address_of(const wu::IpInfo& info, const net::Mac& mac, const std::string& vpc,
                                 const std::string& subnet, const std::string& object) {
    return {info.address,
            info.prefix_length.value_or(0),
            info.gateway,
            info.mac.value_or(mac),
            info.vpc.empty() ? vpc : info.vpc,
            info.subnet.empty() ? subnet : info.subnet,
            info.object.empty() ? object : info.object};
  }

  [[nodiscard]] Result<void> take_given(const wu::IpInfo& info, const Interface& to, const std::string& subnet,
                                        std::vector<CloudAddress>& given) {
    const CloudAddress address = address_of(info, to.mac, to.vpc, subnet, to.object);
    if (address.mac != to.mac || address.subnet != subnet) {
      return fail(ErrorCode::unknown_outcome,
                  fmt::format("{} was given to {} in {}, not to {} in {}", address.address.to_string(),
                              address.mac.to_string(), address.subnet, to.mac.to_string(), subnet));
    }
    given.push_back(address);
    return {};
  }

  [[nodiscard]] Result<void> allocate_one(const Interface& to, const std::string& subnet,
                                          const std::optional<net::Address>& wanted, Deadline deadline,
                                          std::vector<CloudAddress>& given, bool* said_no = nullptr) {
    const wu::Target target{to.zone, to.vpc, subnet, to.mac, to.object};
    TRY(const wu::Answer answer, write(wu::allocate_request(scope(to), target, wanted), deadline, said_no));
    const auto info = wu::decode_allocated(answer);
    if (!info) return fail(ErrorCode::unknown_outcome, info.error().in("AllocateSecondaryIp").message);
    TRY_VOID(take_given(*info, to, subnet, given));
    return complete(given, deadline);
  }

  [[nodiscard]] Result<void> allocate_batch(const Interface& to, const std::string& subnet, std::uint32_t count,
                                            Deadline deadline, std::vector<CloudAddress>& given) {
    const wu::Target target{to.zone, to.vpc, subnet, to.mac, to.object};
    TRY(const wu::Answer answer, write(wu::allocate_batch_request(scope(to), target, count), deadline));
    const auto items = wu::decode_batch(answer);
    if (!items) return fail(ErrorCode::unknown_outcome, items.error().in("AllocateBatchSecondaryIp").message);
    std::string why = "no reason given";
    const std::size_t before = given.size();
    for (const wu::BatchItem& item : *items) {
      if (item.given) {
        TRY_VOID(take_given(*item.given, to, subnet, given));
      } else if (!item.message.empty()) {
        why = item.message;
      }
    }
    if (given.size() > before) return complete(given, deadline);
    // All of them failed, each for a reason in prose: the subnet says whether it has any left.
    const auto state = subnet_info(to.vpc, subnet, deadline);
    const bool exhausted = state && state->available == 0U;
    return fail(exhausted ? ErrorCode::exhausted : ErrorCode::unavailable,
                fmt::format("AllocateBatchSecondaryIp: none of {} was given: {}", count, shown(why)));
  }

  /// Lengths and gateways that an answer left out, from the subnet. Without them the addresses are given all the same.
  [[nodiscard]] Result<void> complete(std::vector<CloudAddress>& addresses, Deadline deadline) {
    for (CloudAddress& one : addresses) {
      if (one.prefix_length != 0 && one.gateway) continue;
      const auto info = subnet_info(one.vpc, one.subnet, deadline);
      if (!info) return {};
      if (one.prefix_length == 0 && info->range) one.prefix_length = static_cast<std::uint32_t>(info->range->length());
      if (!one.gateway && info->gateway && info->gateway->family() == one.address.family()) one.gateway = info->gateway;
    }
    return {};
  }

  [[nodiscard]] Result<std::vector<CloudAddress>> list(const std::string& vpc, const std::string& subnet,
                                                       const std::optional<net::Mac>& mac,
                                                       const std::optional<net::Address>& address, Deadline deadline) {
    TRY(const wu::Answer answer, read(wu::describe_request(scope(known()), vpc, subnet, mac, address), deadline));
    const auto all = wu::decode_addresses(answer);
    if (!all) return fail(ErrorCode::internal, all.error().in("DescribeSecondaryIp").message);
    // Where nothing of it can be read it is no list.
    if (all->addresses.empty() && !all->odd.empty()) {
      return fail(ErrorCode::internal, "DescribeSecondaryIp: " + shown(all->odd.front()));
    }
    note_odd(all->odd);
    std::vector<CloudAddress> found;
    for (const wu::IpInfo& info : all->addresses) {
      // The API has been seen to answer more than was asked for.
      if (address && info.address != *address) continue;
      if (mac && info.mac && *info.mac != *mac) continue;
      if (!info.subnet.empty() && info.subnet != subnet) continue;
      if (!info.mac && !mac) {
        return fail(ErrorCode::internal, "DescribeSecondaryIp: it does not say the Mac of " + info.address.to_string());
      }
      found.push_back(address_of(info, mac.value_or(net::Mac{}), vpc, subnet, {}));
    }
    // The address that was asked for by name may be the one that cannot be read.
    if (address && found.empty() && !all->odd.empty()) {
      return fail(ErrorCode::internal, fmt::format("DescribeSecondaryIp: what it says of {} cannot be read: {}",
                                                   address->to_string(), shown(all->odd.front())));
    }
    return found;
  }

  /// Told once, until it is another one.
  void note_odd(const std::vector<std::string>& odd) {
    if (odd.empty() || !options_.log) return;
    {
      const std::lock_guard lock(mutex_);
      if (odd.front() == told_odd_) return;
      told_odd_ = odd.front();
    }
    options_.log(fmt::format("DescribeSecondaryIp: {} of its elements are passed over, as they tell no address: {}",
                             odd.size(), shown(odd.front())));
  }

  [[nodiscard]] Result<wu::SubnetInfo> subnet_info(const std::string& vpc, const std::string& subnet,
                                                   Deadline deadline) {
    TRY(const wu::Answer answer, read(wu::describe_subnet_request(scope(known()), vpc, subnet), deadline));
    const auto all = wu::decode_subnets(answer);
    if (!all) return fail(ErrorCode::internal, all.error().in("DescribeSubnet").message);
    for (const wu::SubnetInfo& one : *all) {
      if (one.subnet == subnet) return one;
    }
    return fail(ErrorCode::not_found, fmt::format("there is no subnet {} in {}", subnet, vpc));
  }

  // ---------------------------------------------------------------- calls

  static std::string shown(std::string_view text) { return printable(text, Printed::line); }

  [[nodiscard]] Deadline within(Deadline deadline) const {
    const Deadline own = Deadline::after(clock_.now(), options_.call_time);
    return {std::min(own.at_since_boot, deadline.at_since_boot)};
  }

  [[nodiscard]] Result<wu::Answer> read(wu::Parameters parameters, Deadline deadline) {
    return call(parameters, false, deadline, nullptr);
  }
  /// `said_no`: set when the API refused with a code that is not known.
  [[nodiscard]] Result<wu::Answer> write(wu::Parameters parameters, Deadline deadline, bool* said_no = nullptr) {
    return call(parameters, true, deadline, said_no);
  }

  [[nodiscard]] Result<wu::Answer> call(const wu::Parameters& parameters, bool is_write, Deadline deadline,
                                        bool* said_no) {
    const std::string action = parameters.front().second;
    for (bool is_second = false;; is_second = true) {
      TRY(const wu::Keys keys, credentials(action, deadline));
      TRY_VOID(take_turn(action, deadline));
      const Instant started = clock_.now();
      Verdict verdict = Verdict::other;
      auto answer = call_once(action, wu::signed_by(parameters, keys, options_.sha1), is_write, deadline, verdict);
      tell(action, started, answer ? "ok" : name_of(answer.error().code));
      if (answer) return answer;
      if (verdict == Verdict::stale_token) {
        credentials_.forget(keys);
        if (!is_second) continue;
      }
      if (said_no != nullptr) *said_no = verdict == Verdict::other;
      return answer;
    }
  }

  [[nodiscard]] Result<wu::Keys> credentials(const std::string& action, Deadline deadline) {
    auto keys = credentials_.keys(deadline);
    if (!keys) return fail(keys.error().in(action));
    return keys;
  }

  [[nodiscard]] Result<void> take_turn(const std::string& action, Deadline deadline) {
    const auto wait = limiter_of(action).take(clock_.now(), deadline);
    if (!wait) {
      return fail(ErrorCode::deadline_exceeded,
                  fmt::format("{}: the next turn comes after the deadline: the cloud wants fewer calls", action));
    }
    if (wait->count() == 0) return {};
    if (options_.sleep) {
      options_.sleep(*wait);
    } else {
      std::this_thread::sleep_for(*wait);
    }
    return {};
  }

  [[nodiscard]] Result<wu::Answer> call_once(const std::string& action, const wu::Parameters& parameters, bool is_write,
                                             Deadline deadline, Verdict& verdict) {
    verdict = Verdict::fault;
    const ErrorCode unclear = is_write ? ErrorCode::unknown_outcome : ErrorCode::unavailable;
    const auto response = api_.call(
        {"POST",
         "/?Action=" + action,
         {{"Content-Type", "application/x-www-form-urlencoded"}, {"User-Agent", std::string("croft/") + CROFT_VERSION}},
         wu::form_of(parameters)},
        within(deadline));
    if (!response) {
      Error error = response.error().in(action);
      if (error.code == ErrorCode::unknown_outcome) error.code = unclear;
      if (error.code == ErrorCode::permission_denied || error.code == ErrorCode::invalid_argument) {
        error.code = ErrorCode::refused_by_configuration;
      }
      return fail(std::move(error));
    }
    if (response->status == 429) return throttled_by(action, "HTTP 429", verdict);
    if (response->status >= 500) {
      return fail(unclear, fmt::format("{}: HTTP {}", action, response->status));
    }
    if (response->status >= 300) {
      return fail(ErrorCode::refused_by_configuration,
                  fmt::format("{}: HTTP {} of {}: is it the API?", action, response->status, options_.api.text()));
    }
    auto answer = wu::decode_answer(response->body);
    if (!answer) {
      return fail(is_write ? ErrorCode::unknown_outcome : ErrorCode::internal, answer.error().in(action).message);
    }
    verdict = wu::verdict_of(answer->ret_code);
    if (verdict == Verdict::ok) return answer;
    const std::string said =
        fmt::format("RetCode {}{}{}", answer->ret_code, answer->message.empty() ? "" : ": ", shown(answer->message));
    if (verdict == Verdict::throttled) return throttled_by(action, said, verdict);
    const std::string_view remedy = wu::remedy_of(answer->ret_code);
    return fail(wu::error_code_of(verdict, is_write),
                fmt::format("{}: {}{}{}", action, said, remedy.empty() ? "" : "; ", remedy));
  }

  [[nodiscard]] Result<wu::Answer> throttled_by(const std::string& action, const std::string& said, Verdict& verdict) {
    verdict = Verdict::throttled;
    ++throttled_;
    limiter_of(action).refused(clock_.now());
    return fail(ErrorCode::unavailable, fmt::format("{}: too many calls: {}", action, said));
  }

  Limiter& limiter_of(const std::string& action) {
    const std::lock_guard lock(mutex_);
    return limiters_.try_emplace(action, options_.rate).first->second;
  }

  void tell(const std::string& action, const Instant& started, std::string_view outcome) const {
    if (tell_) tell_({action, std::string(outcome), clock_.now().since_boot - started.since_boot});
  }

  const Options options_;
  const Clock& clock_;
  os::Http1Client api_;
  os::Http1Client metadata_;
  CredentialSource credentials_;
  std::function<void(const Call&)> tell_;
  std::atomic<std::uint64_t> throttled_{0};
  std::mutex mutex_;
  std::optional<Interface> interface_;       ///< guarded by mutex_
  std::string told_odd_;                     ///< guarded by mutex_
  std::map<std::string, Limiter> limiters_;  ///< the map is guarded by mutex_; its elements stay where they are
};

}  // namespace

wire::ucloud::Keys keys_of_environment(const std::map<std::string, std::string>& environment) {
  for (const char* kind : {"API", "ACCESS"}) {
    const auto pub = environment.find(fmt::format("UCLOUD_{}_PUBKEY", kind));
    const auto pri = environment.find(fmt::format("UCLOUD_{}_PRIKEY", kind));
    if (pub == environment.end() || pri == environment.end() || pub->second.empty() || pri->second.empty()) continue;
    return {pub->second, pri->second, {}};
  }
  return {};
}

std::unique_ptr<Provider> make_ucloud(Options options, const Clock& clock) {
  return std::make_unique<Ucloud>(std::move(options), clock);
}

}  // namespace croft::cloud::ucloud
