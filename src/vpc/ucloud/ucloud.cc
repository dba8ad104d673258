#include "vpc/ucloud/ucloud.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "http/tls.h"
#include "os/digest.h"

namespace croft::cloud::ucloud {

namespace {

namespace wu = wire::ucloud;
using Verdict = wu::Verdict;

/// A page of the machine's metadata. Errors: unavailable; refused_by_configuration with `remedy`; deadline_exceeded.
[[nodiscard]] Result<std::string> page_of(os::Http1Client& metadata, std::string_view path,
                                          std::vector<std::pair<std::string, std::string>> headers,
                                          const std::string& remedy, Deadline deadline) {
  const auto response = metadata.call({"GET", std::string(path), std::move(headers), {}}, deadline);
  if (!response) {
    Error error = response.error();
    // A read: whether it came does not matter.
    if (error.code == ErrorCode::unknown_outcome) error.code = ErrorCode::unavailable;
    return fail(std::move(error));
  }
  if (response->status == 200) return response->body;
  const bool passes = response->status >= 500;
  return fail(passes ? ErrorCode::unavailable : ErrorCode::refused_by_configuration,
              fmt::format("HTTP {}{}", response->status, passes ? "" : ". " + remedy));
}

constexpr const char* kRole = "Uk8sServiceCharacter";
/// One call of the API, within the deadline.
constexpr std::chrono::seconds kCallTime{30};
constexpr std::chrono::minutes kRenewBefore{5};
constexpr std::chrono::seconds kFetchTime{5};
/// How long keys that are still good, or given ones, are used before the metadata are asked again in vain.
constexpr std::chrono::seconds kPause{15};
/// However far ahead their end is by this machine's clock, which may be wrong.
constexpr std::chrono::hours kLifeMost{12};

Deadline sooner(Deadline deadline, std::chrono::nanoseconds most, const Clock& clock) {
  return {std::min(Deadline::after(clock.now(), most).at_since_boot, deadline.at_since_boot)};
}

/// Our identity to the API: keys that the machine's metadata give for a while, renewed 5 minutes before they end; keys
/// that were given, where there are none. Safe to use from several threads; one of them renews, and the others wait for
/// it. Their end is turned into time since the boot when they come: where the wall clock is put later does not matter.
class CredentialSource {
 public:
  /// `fixed` without private key: there are none.
  CredentialSource(os::Http1Client& metadata, std::string path, wu::Keys fixed, const Clock& clock)
      : metadata_(metadata), path_(std::move(path)), fixed_(std::move(fixed)), clock_(clock) {}

  /// Errors: unavailable; refused_by_configuration when the metadata give none and none were given; deadline_exceeded.
  [[nodiscard]] Result<wu::Keys> keys(Deadline deadline) {
    const std::lock_guard lock(mutex_);
    const std::chrono::nanoseconds now = clock_.now().since_boot;
    const bool is_good = now_ && now < now_->good_until;
    if (is_good && now < now_->good_until - kRenewBefore) return now_->keys;
    const bool has_other = is_good || !fixed_.private_key.empty();
    if (has_other && not_before_ && now < *not_before_) return is_good ? now_->keys : fixed_;
    auto fetched = fetch(deadline);
    if (fetched) {
      keep(*std::move(fetched));
      return now_->keys;
    }
    if (!has_other) return fail(std::move(fetched).error().in("credentials from metadata"));
    not_before_ = clock_.now().since_boot + kPause;
    return is_good ? now_->keys : fixed_;
  }

  /// The API does not know the token of these: they are not used again.
  void forget(const wu::Keys& keys) {
    const std::lock_guard lock(mutex_);
    if (!now_ || now_->keys != keys) return;
    now_.reset();
    not_before_.reset();
  }

 private:
  struct Known {
    wu::Keys keys;
    std::chrono::nanoseconds good_until{};  ///< since the boot
  };

  [[nodiscard]] Result<wu::Credentials> fetch(Deadline deadline) {
    TRY(const std::string page, page_of(metadata_, path_, {{"Duration-Seconds", "3600"}}, "Has this machine the role?",
                                        sooner(deadline, kFetchTime, clock_)));
    auto credentials = wu::decode_credentials(page);
    if (credentials || credentials.error().code != ErrorCode::invalid_argument) return credentials;
    return fail(ErrorCode::unavailable, credentials.error().message);
  }

  /// The metadata give no keys that are over already: where they seem to be, the clock is ahead, and the API is asked
  /// what it thinks of them. One that is behind makes them seem to last longer; the API refuses them then, and they are
  /// forgotten.
  void keep(wu::Credentials fetched) {
    const Instant now = clock_.now();
    const std::chrono::nanoseconds left = std::max<std::chrono::nanoseconds>(fetched.expires - now.wall, kPause);
    now_ = Known{std::move(fetched.keys), now.since_boot + std::min<std::chrono::nanoseconds>(left, kLifeMost)};
    not_before_.reset();
    // Keys that live shorter than five minutes would be asked for at each call.
    if (left < kRenewBefore) not_before_ = now.since_boot + kPause;
  }

  os::Http1Client& metadata_;
  const std::string path_;
  const wu::Keys fixed_;
  const Clock& clock_;
  std::mutex mutex_;
  std::optional<Known> now_;                            ///< guarded by mutex_, as below
  std::optional<std::chrono::nanoseconds> not_before_;  ///< after a failure: when to ask again
};

class Ucloud final : public Provider {
 public:
  /// `http` is for both URLs.
  Ucloud(const Place& place, const wire::Url& api, const wire::Url& metadata, const os::Http1Options& http,
         wu::Keys keys, const Clock& clock)
      : place_(place),
        api_url_(api),
        metadata_url_(metadata),
        clock_(clock),
        api_(api, http, clock),
        metadata_(metadata, http, clock),
        credentials_(metadata_, std::string(wu::kCredentialsPath) + kRole, std::move(keys), clock) {}

  void on_call(std::function<void(const Call&)> tell) override { tell_ = std::move(tell); }

  [[nodiscard]] Result<Interface> interface(Deadline deadline) override {
    TRY(Interface found, find_interface(deadline));
    const std::lock_guard lock(mutex_);
    interface_ = found;
    return found;
  }

  [[nodiscard]] Result<std::vector<CloudAddress>> allocate(const Interface& to, const std::string& subnet,
                                                           std::uint32_t count, Deadline deadline) override {
    return allocate_some(to, subnet, count, {}, deadline);
  }

  [[nodiscard]] Result<CloudAddress> allocate_address(const Interface& to, const std::string& subnet,
                                                      const net::Address& address, Deadline deadline) override {
    bool said_no = false;
    const auto result = allocate_some(to, subnet, 1, address, deadline, &said_no);
    if (result) {
      const CloudAddress& given = result->front();
      if (given.address == address) return given;
      return fail(ErrorCode::unknown_outcome, fmt::format("AllocateSecondaryIp: {} was asked for, {} came",
                                                          address.to_string(), given.address.to_string()));
    }
    if (!said_no) return fail(result.error());
    // A code that is not known: who has it says what it meant.
    const auto holder = describe_address(to.vpc, subnet, address, deadline);
    if (!holder || !*holder) return fail(result.error());
    if ((*holder)->mac == to.mac) return **holder;
    return fail(ErrorCode::already_exists,
                fmt::format("{} belongs to {}", address.to_string(), (*holder)->mac.to_string()));
  }

  [[nodiscard]] Result<void> release(const CloudAddress& address, Deadline deadline) override {
    auto answer =
        write(wu::request_at("DeleteSecondaryIp", known(), address, "Ip", address.address.to_string()), deadline);
    if (!answer && answer.error().code != ErrorCode::not_found) return fail(std::move(answer).error());
    return {};
  }

  [[nodiscard]] Result<void> move(const CloudAddress& address, const net::Mac& to, Deadline deadline) override {
    bool said_no = false;
    auto answer = write(wu::request("MoveSecondaryIPMac", known(),
                                    {{"SubnetId", address.subnet},
                                     {"Ip", address.address.to_string()},
                                     {"OldMac", capital_text(address.mac)},
                                     {"NewMac", capital_text(to)}}),
                        deadline, &said_no);
    if (answer) return {};
    if (!said_no) return fail(std::move(answer).error());
    const auto holder = describe_address(address.vpc, address.subnet, address.address, deadline);
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

  [[nodiscard]] Result<std::optional<CloudAddress>> describe_address(const std::string& vpc, const std::string& subnet,
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
    TRY(const wu::Answer answer, read(wu::request("DescribeSubnet", known(),
                                                  {{"VPCId", vpc}, {"SubnetId", subnet}, {"ShowAvailableIPs", "true"}}),
                                      deadline));
    const auto all = wu::decode_subnets(answer);
    if (!all) return fail(ErrorCode::internal, all.error().in("DescribeSubnet").message);
    const auto found = std::ranges::find(*all, subnet, &SubnetState::subnet);
    if (found != all->end()) return *found;
    return fail(ErrorCode::not_found, fmt::format("there is no subnet {} in {}", subnet, vpc));
  }

 private:
  [[nodiscard]] Result<wu::Metadata> metadata(Deadline deadline) {
    const auto started = clock_.now();
    const auto page =
        page_of(metadata_, wu::kMetadataPath, {},
                "Is this a machine of UCloud's? If its metadata are elsewhere, say where (--metadata, in a "
                "network configuration \"metadata\")",
                within(deadline));
    Result<wu::Metadata> metadata =
        page ? wu::decode_metadata(*page)
             : fail(Error(page.error()).in(metadata_url_.text() + std::string(wu::kMetadataPath)));
    if (page && !metadata) metadata = fail(ErrorCode::internal, metadata.error().message);
    tell("metadata", started, metadata ? "ok" : name_of(metadata.error().code));
    if (!metadata) return fail(metadata.error().in("metadata"));
    return metadata;
  }

  [[nodiscard]] Result<Interface> find_interface(Deadline deadline) {
    TRY(const wu::Metadata said, metadata(deadline));
    Interface found = said.interface;
    if (found.project.empty()) found.project = place_.project;
    for (const auto& [value, given, what, variable] :
         {std::tuple(&found.region, &place_.region, "region", "UCLOUD_REGION_ID"),
          std::tuple(&found.vpc, &place_.vpc, "VPC", "UCLOUD_VPC_ID"),
          std::tuple(&found.subnet, &place_.subnet, "subnet", "UCLOUD_SUBNET_ID")}) {
      if (value->empty()) *value = *given;
      if (value->empty()) {
        return fail(ErrorCode::refused_by_configuration,
                    fmt::format("metadata: they do not say the {}: set {}", what, variable));
      }
    }
    if (said.is_bare_metal || found.instance.empty()) return found;
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
    const auto answer = read(wu::request("DescribeUHostInstance", found, {{"UHostIds.0", found.instance}}), deadline);
    if (!answer) {
      if (answer.error().code == ErrorCode::not_found) return found;
      return fail(answer.error());
    }
    const auto id = wu::decode_interface_id(*answer, found.mac);
    if (!id) return fail(ErrorCode::internal, id.error().in("DescribeUHostInstance").message);
    if (!id->empty()) found.object = *id;
    return found;
  }

  /// The own interface, as far as it is known; without one, the given names.
  Interface known() {
    const std::lock_guard lock(mutex_);
    if (interface_) return *interface_;
    Interface given;
    given.region = place_.region;
    given.project = place_.project;
    return given;
  }

  /// An address as an answer has it, with what was asked for where that says nothing.
  static CloudAddress completed(CloudAddress said, const CloudAddress& asked) {
    if (said.mac == net::Mac{}) said.mac = asked.mac;
    for (const auto member : {&CloudAddress::vpc, &CloudAddress::subnet, &CloudAddress::object}) {
      if ((said.*member).empty()) said.*member = asked.*member;
    }
    return said;
  }

  /// By one call: this one, or as many as there are, at most `count`.
  [[nodiscard]] Result<std::vector<CloudAddress>> allocate_some(const Interface& to, const std::string& subnet,
                                                                std::uint32_t count,
                                                                const std::optional<net::Address>& wanted,
                                                                Deadline deadline, bool* said_no = nullptr) {
    const std::string action = count == 1 ? "AllocateSecondaryIp" : "AllocateBatchSecondaryIp";
    const CloudAddress asked{{}, 0, {}, to.mac, to.vpc, subnet, to.object};
    TRY(const wu::Answer answer,
        write(count == 1 ? wu::request_at(action, to, asked, "Ip", wanted ? wanted->to_string() : "")
                         : wu::request_at(action, to, asked, "Count", std::to_string(count)),
              deadline, said_no));
    auto given = wu::decode_given(answer);
    if (!given) return fail(ErrorCode::unknown_outcome, given.error().in(action).message);
    for (CloudAddress& one : given->addresses) {
      one = completed(std::move(one), asked);
      if (one.mac == to.mac && one.subnet == subnet) continue;
      return fail(ErrorCode::unknown_outcome,
                  fmt::format("{} was given to {} in {}, not to {} in {}", one.address.to_string(), one.mac.to_string(),
                              one.subnet, to.mac.to_string(), subnet));
    }
    const std::size_t came = given->addresses.size();
    if (count == 1 && came != 1) {
      return fail(ErrorCode::unknown_outcome, fmt::format("{}: one address was asked for, {} came", action, came));
    }
    if (came > 0) {
      complete(given->addresses, deadline);
      return std::move(given->addresses);
    }
    // All of them failed, each for a reason in prose: the subnet says whether it has any left.
    const auto state = this->subnet(to.vpc, subnet, deadline);
    const bool exhausted = state && state->available == 0U;
    return fail(exhausted ? ErrorCode::exhausted : ErrorCode::unavailable,
                fmt::format("{}: none of {} was given: {}", action, count,
                            given->why_not.empty() ? "no reason given" : on_one_line(given->why_not)));
  }

  /// Lengths and gateways that an answer left out, from the subnet. Without them the addresses are given all the same.
  void complete(std::vector<CloudAddress>& addresses, Deadline deadline) {
    for (CloudAddress& one : addresses) {
      if (one.prefix_length != 0 && one.gateway) continue;
      const auto info = subnet(one.vpc, one.subnet, deadline);
      if (!info) return;
      if (one.prefix_length == 0 && info->range) one.prefix_length = static_cast<std::uint32_t>(info->range->length());
      if (!one.gateway && info->gateway && info->gateway->family() == one.address.family()) one.gateway = info->gateway;
    }
  }

  [[nodiscard]] Result<std::vector<CloudAddress>> list(const std::string& vpc, const std::string& subnet,
                                                       const std::optional<net::Mac>& mac,
                                                       const std::optional<net::Address>& address, Deadline deadline) {
    TRY(const wu::Answer answer, read(wu::request("DescribeSecondaryIp", known(),
                                                  {{"VPCId", vpc},
                                                   {"SubnetId", subnet},
                                                   {"Mac", mac ? capital_text(*mac) : ""},
                                                   {"Ip", address ? address->to_string() : ""}}),
                                      deadline));
    const auto all = wu::decode_addresses(answer);
    if (!all) return fail(ErrorCode::internal, all.error().in("DescribeSecondaryIp").message);
    // Where nothing of it can be read it is no list.
    if (all->addresses.empty() && !all->odd.empty()) {
      return fail(ErrorCode::internal, "DescribeSecondaryIp: " + on_one_line(all->odd));
    }
    std::vector<CloudAddress> found;
    for (const CloudAddress& one : all->addresses) {
      const bool has_mac = one.mac != net::Mac{};
      // The API has been seen to answer more than was asked for.
      if (address && one.address != *address) continue;
      if (mac && has_mac && one.mac != *mac) continue;
      if (!one.subnet.empty() && one.subnet != subnet) continue;
      if (!has_mac && !mac) {
        return fail(ErrorCode::internal, "DescribeSecondaryIp: it does not say the Mac of " + one.address.to_string());
      }
      found.push_back(completed(one, {{}, 0, {}, mac.value_or(net::Mac{}), vpc, subnet, {}}));
    }
    // The address that was asked for by name may be the one that cannot be read.
    if (address && found.empty() && !all->odd.empty()) {
      return fail(ErrorCode::internal, fmt::format("DescribeSecondaryIp: what it says of {} cannot be read: {}",
                                                   address->to_string(), on_one_line(all->odd)));
    }
    return found;
  }

  // ---------------------------------------------------------------- calls

  static std::string on_one_line(std::string_view text) { return printable(text, Printed::line); }

  [[nodiscard]] Deadline within(Deadline deadline) const { return sooner(deadline, kCallTime, clock_); }

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
      const auto keys = credentials_.keys(deadline);
      if (!keys) return fail(keys.error().in(action));
      const Instant started = clock_.now();
      Verdict verdict = Verdict::other;
      auto answer = call_once(action, wu::signed_by(parameters, *keys, os::sha1), is_write, deadline, verdict);
      tell(action, started, answer ? "ok" : verdict == Verdict::throttled ? "throttled" : name_of(answer.error().code));
      if (answer) return answer;
      if (verdict == Verdict::stale_token) {
        credentials_.forget(*keys);
        if (!is_second) continue;
      }
      if (said_no != nullptr) *said_no = verdict == Verdict::other;
      return answer;
    }
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
    if (response->status == 429) {
      verdict = Verdict::throttled;
      return fail(ErrorCode::unavailable, action + ": too many calls: HTTP 429");
    }
    if (response->status >= 500) {
      return fail(unclear, fmt::format("{}: HTTP {}", action, response->status));
    }
    if (response->status >= 300) {
      return fail(ErrorCode::refused_by_configuration,
                  fmt::format("{}: HTTP {} of {}: is it the API?", action, response->status, api_url_.text()));
    }
    auto answer = wu::decode_answer(response->body);
    if (!answer) {
      return fail(is_write ? ErrorCode::unknown_outcome : ErrorCode::internal, answer.error().in(action).message);
    }
    const wu::Meaning meaning = wu::meaning_of(answer->ret_code);
    verdict = meaning.verdict;
    if (verdict == Verdict::ok) return answer;
    const std::string said = fmt::format("RetCode {}{}{}", answer->ret_code, answer->message.empty() ? "" : ": ",
                                         on_one_line(answer->message));
    return fail(wu::error_code_of(verdict, is_write),
                fmt::format("{}: {}{}{}", action, said, meaning.remedy.empty() ? "" : "; ", meaning.remedy));
  }

  void tell(const std::string& action, const Instant& started, std::string_view outcome) const {
    if (tell_) tell_({action, std::string(outcome), clock_.now().since_boot - started.since_boot});
  }

  const Place place_;
  const wire::Url api_url_, metadata_url_;
  const Clock& clock_;
  os::Http1Client api_;
  os::Http1Client metadata_;
  CredentialSource credentials_;
  std::function<void(const Call&)> tell_;
  std::mutex mutex_;
  std::optional<Interface> interface_;  ///< guarded by mutex_
};

}  // namespace

wire::ucloud::Keys keys_of_environment(const std::function<std::string(const char* name)>& environment) {
  for (const auto& [pub, pri] : {std::pair("UCLOUD_API_PUBKEY", "UCLOUD_API_PRIKEY"),
                                 std::pair("UCLOUD_ACCESS_PUBKEY", "UCLOUD_ACCESS_PRIKEY")}) {
    wire::ucloud::Keys keys{environment(pub), environment(pri), {}};
    if (!keys.public_key.empty() && !keys.private_key.empty()) return keys;
  }
  return {};
}

Result<std::unique_ptr<Provider>> open_ucloud(const Place& place, wire::ucloud::Keys keys, os::LookUp look_up,
                                              const Clock& clock) {
  TRY(const wire::Url api, wire::Url::parse(place.api.empty() ? kDefaultApi : place.api));
  TRY(const wire::Url metadata, wire::Url::parse(place.metadata.empty() ? kDefaultMetadata : place.metadata));
  os::Http1Options http;
  http.look_up = std::move(look_up);
  if (api.secure) {
    os::TlsFiles files;
    files.ca_file = "/etc/ssl/certs/ca-certificates.crt";
    if (!api.is_numeric) files.server_name = api.host;
    files.http1 = true;
    http.security = os::make_tls(std::move(files));
  }
  return std::make_unique<Ucloud>(place, api, metadata, http, std::move(keys), clock);
}

}  // namespace croft::cloud::ucloud
