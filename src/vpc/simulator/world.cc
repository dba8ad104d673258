#include "vpc/simulator/world.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/json/document.h"
#include "base/json/writer.h"
#include "base/time_text.h"
#include "vpc/format/ucloud/metadata.h"
#include "vpc/format/ucloud/requests.h"
#include "vpc/format/ucloud/ret_code.h"

namespace croft::cloud::simulator {
namespace {

namespace wu = wire::ucloud;
using Writer = wire::JsonWriter;

// Codes of this simulator where the API's own are not known; nobody may rely on them.
constexpr std::int64_t kBadParameter = 59001;
constexpr std::int64_t kTaken = 59002;
constexpr std::int64_t kWrongSubnet = 59003;
constexpr std::size_t kEventsMax = 100'000;
constexpr std::size_t kFaultsMax = 1000;
constexpr std::uint32_t kBatchMax = 256;

std::string text_in(const wu::Parameters& parameters, std::string_view name) {
  const std::string* found = wu::find(parameters, name);
  return found == nullptr ? std::string() : *found;
}

double milliseconds_of(Span span) { return std::chrono::duration<double, std::milli>(span).count(); }

Writer compact() { return Writer(Writer::Layout::compact); }

}  // namespace

World::World(Config config, wu::Sha1 sha1, Random& random)
    : config_(std::move(config)), sha1_(std::move(sha1)), random_(random) {
  for (const Node& node : config_.nodes) {
    if (node.address) own_.insert({node.subnet, *node.address});
  }
}

Span World::draw(const Between& between) {
  if (between.most <= between.least) return between.least;
  const auto width = static_cast<std::uint64_t>((between.most - between.least).count());
  return between.least + Span(static_cast<std::int64_t>(random_.next() % (width + 1)));
}

const Subnet* World::subnet_of(std::string_view id) const {
  const auto found = std::ranges::find(config_.subnets, id, [](const Subnet& one) { return std::string_view(one.id); });
  return found == config_.subnets.end() ? nullptr : &*found;
}

const Node* World::node_of(const net::Mac& mac) const {
  const auto found = std::ranges::find(config_.nodes, mac, &Node::mac);
  return found == config_.nodes.end() ? nullptr : &*found;
}

bool World::may_have(const Subnet& subnet, const net::Address& address) const {
  return subnet.range.contains(address) && address != subnet.range.first() && address != subnet.range.last() &&
         address != subnet.gateway && !own_.contains({subnet.id, address});
}

std::optional<net::Address> World::free_in(const Subnet& subnet) const {
  if (exhausted_.contains(subnet.id)) return std::nullopt;
  for (auto one = subnet.range.first().next(); one && subnet.range.contains(*one); one = one->next()) {
    if (may_have(subnet, *one) && !held_.contains({subnet.id, *one})) return one;
  }
  return std::nullopt;
}

std::uint64_t World::free_count(const Subnet& subnet) const {
  if (exhausted_.contains(subnet.id)) return 0;
  const net::U128 last = subnet.range.last_offset();
  const std::uint64_t all = last > net::U128{1'000'000} ? 1'000'000 : last.lo + 1;
  const auto held =
      static_cast<std::uint64_t>(std::ranges::count(held_, subnet.id, [](const auto& one) { return one.first.first; }));
  const auto own =
      static_cast<std::uint64_t>(std::ranges::count(own_, subnet.id, [](const Place& one) { return one.first; }));
  const std::uint64_t not_there = held + own + 3;
  return all > not_there ? all - not_there : 0;
}

void World::set(const std::string& what, const Place& place, const std::optional<net::Mac>& to, const Instant& now) {
  const auto found = held_.find(place);
  Event event{now.since_boot, what, place.first, place.second, {}, to};
  if (found != held_.end()) event.from = found->second.mac;
  if (to) {
    held_[place] = {*to, now.since_boot, now.since_boot + draw(config_.flow)};
  } else {
    held_.erase(place);
  }
  events_.push_back(event);
  if (events_.size() > kEventsMax) {
    const Event& old = events_.front();
    if (old.to)
      folded_[{old.subnet, old.address}] = *old.to;
    else
      folded_.erase({old.subnet, old.address});
    events_.pop_front();
  }
  if (const Subnet* subnet = subnet_of(place.first)) {
    auto& history = free_history_[subnet->id];
    history.emplace_back(now.since_boot, free_count(*subnet));
    // One that is older than the lag is what is told; all before it are not.
    while (history.size() > 2 && history[1].first + config_.available_lag <= now.since_boot) history.pop_front();
  }
}

World::Plan World::plan(const std::string& action) {
  Plan plan;
  const Span latency = draw(config_.latency);
  plan.before = latency / 2;
  plan.after = latency - plan.before;
  for (auto fault = faults_.begin(); fault != faults_.end(); ++fault) {
    if (fault->action != "*" && fault->action != action) continue;
    plan.fault = *fault;
    if (--fault->count == 0) faults_.erase(fault);
    break;
  }
  return plan;
}

std::optional<World::Answer> World::refusal(const wu::Parameters& parameters, const Instant& now) {
  constexpr std::array kActions{"AllocateSecondaryIp",  "AllocateBatchSecondaryIp", "DeleteSecondaryIp",
                                "DescribeSecondaryIp",  "MoveSecondaryIPMac",       "DescribeSubnet",
                                "DescribeUHostInstance"};
  const std::string action = text_in(parameters, "Action");
  if (action.empty()) return Answer{wu::kNoAction, {}, "Missing Action"};
  if (std::ranges::find(kActions, action) == kActions.end()) return Answer{wu::kUnknownAction, {}, "Unknown Action"};
  if (text_in(parameters, "Signature").empty()) return Answer{wu::kNoSignature, {}, "Missing signature"};
  const std::string user = text_in(parameters, "PublicKey");
  const std::string token = text_in(parameters, "SecurityToken");
  std::string secret = config_.user.private_key;
  if (token.empty()) {
    if (user != config_.user.public_key) return Answer{wu::kNoSuchUser, {}, "User not found"};
  } else {
    const auto found = tokens_.find(token);
    if (found == tokens_.end() || found->second.second <= now.wall || found->second.first.public_key != user) {
      return Answer{wu::kNoSuchToken, {}, "Token not found"};
    }
    secret = found->second.first.private_key;
  }
  if (wu::signature_of(parameters, secret, sha1_) != text_in(parameters, "Signature")) {
    return Answer{wu::kBadSignature, {}, "Signature VerifyAC Error"};
  }
  if (const auto project = text_in(parameters, "ProjectId"); !project.empty() && project != config_.project) {
    return Answer{wu::kNoProject, {}, "Project not exist"};
  }
  if (text_in(parameters, "Region") != config_.region) return Answer{kBadParameter, {}, "Region"};
  if (const auto zone = text_in(parameters, "Zone"); !zone.empty() && zone != config_.zone) {
    return Answer{wu::kZoneNotAllowed, {}, "Zone"};
  }
  auto [at, is_new] = buckets_.try_emplace(action);
  Bucket& bucket = at->second;
  if (is_new) bucket = {config_.burst, now.since_boot, config_.calls_per_second, config_.burst};
  if (bucket.per_second <= 0) return std::nullopt;
  bucket.tokens =
      std::min(bucket.burst,
               bucket.tokens + bucket.per_second * std::chrono::duration<double>(now.since_boot - bucket.at).count());
  bucket.at = now.since_boot;
  if (bucket.tokens < 1) return Answer{wu::kRateLimited, {}, "Request was limited"};
  bucket.tokens -= 1;
  return std::nullopt;
}

std::string World::ip_info(const Place& place, const net::Mac& mac) const {
  const Subnet* subnet = subnet_of(place.first);
  Writer out = compact();
  out.begin_object();
  const auto member = [&](std::string_view key, const std::string& value) {
    out.key(key);
    out.text(value);
  };
  member("Ip", place.second.to_string());
  const int bits = net::bit_length(place.second.family());
  const net::U128 mask = net::U128::low_bits(bits) & ~net::U128::low_bits(bits - subnet->range.length());
  member("Mask", place.second.is_v4() ? net::Address::from(net::Family::v4, mask).to_string()
                                      : std::to_string(subnet->range.length()));
  member("Gateway", subnet->gateway.to_string());
  member("Mac", wu::mac_text(mac));
  member("SubnetId", place.first);
  member("VPCId", config_.vpc);
  out.end_object();
  return std::move(out).take();
}

World::Answer World::allocate(const wu::Parameters& parameters, const Instant& now, bool batch) {
  const std::string action = text_in(parameters, "Action");
  const auto mac = net::Mac::parse(text_in(parameters, "Mac"));
  const Node* node = mac ? node_of(*mac) : nullptr;
  if (node == nullptr) return {kBadParameter, {}, "Mac"};
  const std::string object = text_in(parameters, "ObjectId");
  if (object != node->instance && object != node->interface_id) return {kBadParameter, {}, "ObjectId"};
  const Subnet* subnet = subnet_of(text_in(parameters, "SubnetId"));
  if (subnet == nullptr || subnet->id != node->subnet) return {kWrongSubnet, {}, "SubnetId"};
  if (!batch) {
    std::optional<net::Address> address;
    if (const auto wanted = text_in(parameters, "Ip"); !wanted.empty()) {
      const auto parsed = net::Address::parse(wanted);
      if (!parsed || !may_have(*subnet, *parsed)) return {kBadParameter, {}, "Ip"};
      if (held_.contains({subnet->id, *parsed})) return {kTaken, {}, "Ip in use"};
      address = *parsed;
    } else {
      address = free_in(*subnet);
    }
    if (!address) return {wu::kSubnetExhausted, {}, "No enough ip"};
    set(action, {subnet->id, *address}, *mac, now);
    return {0, ",\"IpInfo\":" + ip_info({subnet->id, *address}, *mac), {}};
  }
  std::uint32_t count = 0;
  for (const char c : text_in(parameters, "Count").substr(0, 6)) {
    if (c < '0' || c > '9') return {kBadParameter, {}, "Count"};
    count = count * 10 + static_cast<std::uint32_t>(c - '0');
  }
  if (count == 0 || count > kBatchMax) return {kBadParameter, {}, "Count"};
  if (!free_in(*subnet)) return {wu::kSubnetExhausted, {}, "No enough ip"};
  std::string list;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!list.empty()) list += ',';
    const bool fails = fail_items_ > 0;
    if (fails) --fail_items_;
    const auto address = fails ? std::nullopt : free_in(*subnet);
    if (!address) {
      list += R"({"Ip":"","Status":{"StatusCode":"Failed","Message":"no ip"}})";
      continue;
    }
    set(action, {subnet->id, *address}, *mac, now);
    std::string info = ip_info({subnet->id, *address}, *mac);
    info.pop_back();
    list += info + R"(,"Status":{"StatusCode":"Succeeded","Message":""}})";
  }
  return {0, ",\"IpsInfo\":[" + list + "]", {}};
}

World::Answer World::remove(const wu::Parameters& parameters, const Instant& now) {
  const auto address = net::Address::parse(text_in(parameters, "Ip"));
  const auto mac = net::Mac::parse(text_in(parameters, "Mac"));
  if (!address || !mac) return {kBadParameter, {}, "Ip or Mac"};
  const Place place{text_in(parameters, "SubnetId"), *address};
  const auto found = held_.find(place);
  if (found == held_.end() || found->second.mac != *mac) return {wu::kNoSuchAddress, {}, "Secondary ip not exist"};
  set(text_in(parameters, "Action"), place, {}, now);
  return {};
}

World::Answer World::move(const wu::Parameters& parameters, const Instant& now) {
  const auto address = net::Address::parse(text_in(parameters, "Ip"));
  const auto from = net::Mac::parse(text_in(parameters, "OldMac"));
  const auto to = net::Mac::parse(text_in(parameters, "NewMac"));
  if (!address || !from || !to) return {kBadParameter, {}, "Ip, OldMac or NewMac"};
  const Place place{text_in(parameters, "SubnetId"), *address};
  const auto found = held_.find(place);
  if (found == held_.end() || found->second.mac != *from) return {wu::kNoSuchAddress, {}, "Secondary ip not exist"};
  const Node* node = node_of(*to);
  if (node == nullptr || node->subnet != place.first) return {kWrongSubnet, {}, "NewMac is not in the subnet"};
  set(text_in(parameters, "Action"), place, *to, now);
  return {};
}

World::Answer World::describe(const wu::Parameters& parameters) const {
  const std::string subnet = text_in(parameters, "SubnetId");
  const std::string mac = text_in(parameters, "Mac"), ip = text_in(parameters, "Ip");
  const auto only_mac = net::Mac::parse(mac);
  const auto only_ip = net::Address::parse(ip);
  if ((!mac.empty() && !only_mac) || (!ip.empty() && !only_ip)) return {kBadParameter, {}, "Mac or Ip"};
  if (subnet_of(subnet) == nullptr) return {kBadParameter, {}, "SubnetId"};
  std::string list;
  for (const auto& [place, holding] : held_) {
    if (place.first != subnet || (only_mac && holding.mac != *only_mac) || (only_ip && place.second != *only_ip)) {
      continue;
    }
    list += (list.empty() ? "" : ",") + ip_info(place, holding.mac);
  }
  return {0, ",\"DataSet\":[" + list + "]", {}};
}

World::Answer World::describe_subnet(const wu::Parameters& parameters, const Instant& now) const {
  const Subnet* subnet = subnet_of(text_in(parameters, "SubnetId"));
  if (subnet == nullptr) return {0, ",\"TotalCount\":0,\"DataSet\":[]", {}};
  std::uint64_t available = free_count(*subnet);
  if (config_.available_lag.count() > 0 && !exhausted_.contains(subnet->id)) {
    const auto history = free_history_.find(subnet->id);
    if (history != free_history_.end() && !history->second.empty()) {
      available = history->second.front().second;
      for (const auto& [at, count] : history->second) {
        if (at + config_.available_lag <= now.since_boot) available = count;
      }
    }
  }
  return {0,
          fmt::format(R"(,"TotalCount":1,"DataSet":[{{"SubnetId":"{}","Subnet":"{}","Netmask":"{}","Gateway":"{}",)"
                      R"("AvailableIPs":{},"VPCId":"{}","Zone":"{}"}}])",
                      subnet->id, subnet->range.address().to_string(), subnet->range.length(),
                      subnet->gateway.to_string(), available, config_.vpc, config_.zone),
          {}};
}

World::Answer World::describe_host(const wu::Parameters& parameters) const {
  const std::string id = text_in(parameters, "UHostIds.0");
  for (const Node& node : config_.nodes) {
    if (node.instance != id) continue;
    return {0,
            fmt::format(R"(,"TotalCount":1,"UHostSet":[{{"UHostId":"{}","IPSet":[{{"Default":"true","Mac":"{}",)"
                        R"("NetworkInterfaceId":"{}","SubnetId":"{}","VPCId":"{}"}}]}}])",
                        node.instance, wu::mac_text(node.mac), node.interface_id, node.subnet, config_.vpc),
            {}};
  }
  return {0, ",\"TotalCount\":0,\"UHostSet\":[]", {}};
}

World::Answer World::act(const wu::Parameters& parameters, const Instant& now) {
  const std::string action = text_in(parameters, "Action");
  if (action == "AllocateSecondaryIp") return allocate(parameters, now, false);
  if (action == "AllocateBatchSecondaryIp") return allocate(parameters, now, true);
  if (action == "DeleteSecondaryIp") return remove(parameters, now);
  if (action == "MoveSecondaryIPMac") return move(parameters, now);
  if (action == "DescribeSecondaryIp") return describe(parameters);
  if (action == "DescribeSubnet") return describe_subnet(parameters, now);
  return describe_host(parameters);
}

Reply World::api(const wu::Parameters& parameters, const Plan& plan, const Instant& now) {
  const bool fails = plan.fault.has_value();
  CallSeen seen{now.since_boot, text_in(parameters, "Action").substr(0, 64), 0, {}};
  Answer answer;
  if (fails && (!plan.fault->committed || plan.fault->kind == Fault::Kind::hang)) {
    seen.fault = "not done";
  } else if (auto refused = refusal(parameters, now)) {
    answer = std::move(*refused);
  } else {
    answer = act(parameters, now);
    if (fails) seen.fault = "done, but not told";
  }
  Reply reply;
  if (fails) {
    reply.lost = plan.fault->kind == Fault::Kind::lose || plan.fault->kind == Fault::Kind::hang;
    if (plan.fault->kind == Fault::Kind::http) reply.status = static_cast<int>(plan.fault->value);
    if (plan.fault->kind == Fault::Kind::ret_code) answer = {plan.fault->value, {}, "as told"};
  }
  seen.ret_code = answer.ret_code;
  calls_.push_back(seen);
  if (calls_.size() > kEventsMax) calls_.pop_front();
  Writer message = compact();
  message.text(answer.message);
  Writer action = compact();
  action.text(seen.action + "Response");
  if (reply.status == 200) {
    reply.body = fmt::format(R"({{"RetCode":{},"Action":{},"Message":{}{}}})", answer.ret_code,
                             std::move(action).take(), std::move(message).take(), answer.members);
  }
  return reply;
}

std::optional<Reply> World::metadata(std::string_view target, const Instant& now) {
  for (const Node& node : config_.nodes) {
    if (!target.starts_with("/" + node.name + "/meta-data/")) continue;
    const std::string_view path = target.substr(node.name.size() + 1);
    if (path == wu::kMetadataPath) {
      return Reply{200,
                   fmt::format(R"({{"availability-zone":"{}","instance-id":"{}","region":"{}","uhost":{{"cpu":4,)"
                               R"("project-id":"{}","network-interfaces":[{{"default":true,"id":"{}","mac":"{}",)"
                               R"("subnet-id":"{}","vpc-id":"{}","ips":[]}}]}}}})",
                               config_.zone, node.instance, config_.region, config_.project, node.interface_id,
                               wu::mac_text(node.mac), node.subnet, config_.vpc),
                   false};
    }
    const bool v1 = path == std::string(wu::kCredentialsPathV1) + config_.role;
    const bool v2 = path == std::string(wu::kCredentialsPathV2) + config_.role;
    if (!v1 && !v2) return Reply{404, {}, false};
    const auto number = [&] { return fmt::format("{:016x}{:016x}", random_.next(), random_.next()); };
    const WallTime expires = std::chrono::floor<std::chrono::seconds>(now.wall) + config_.token_life;
    const wu::Keys keys{"sts-" + number(), number(), number()};
    // Those that are over need not be known any more.
    std::erase_if(tokens_, [&](const auto& one) { return one.second.second <= now.wall; });
    tokens_[keys.security_token] = {keys, expires};
    if (v1) {
      return Reply{200,
                   fmt::format(R"({{"RetCode":0,"Message":"","Data":{{"Expiration":{},"PublicKey":"{}",)"
                               R"("PrivateKey":"{}","SecurityToken":"{}","ProjectID":"{}","UHostID":"{}"}}}})",
                               std::chrono::duration_cast<std::chrono::seconds>(expires.time_since_epoch()).count(),
                               keys.public_key, keys.private_key, keys.security_token, config_.project, node.instance),
                   false};
    }
    return Reply{200,
                 fmt::format(R"({{"AccessKeyId":"{}","AccessKeySecret":"{}","SecurityToken":"{}","Expiration":"{}"}})",
                             keys.public_key, keys.private_key, keys.security_token, rfc3339_exact(expires)),
                 false};
  }
  return std::nullopt;
}

std::vector<std::string> World::check() const {
  std::vector<std::string> wrong;
  for (const auto& [place, holding] : held_) {
    const Subnet* subnet = subnet_of(place.first);
    const Node* node = node_of(holding.mac);
    const std::string what = place.first + " " + place.second.to_string();
    if (subnet == nullptr || !may_have(*subnet, place.second)) wrong.push_back(what + " is no address of its subnet");
    if (node == nullptr) wrong.push_back(what + " belongs to nobody's interface");
    if (node != nullptr && node->subnet != place.first) wrong.push_back(what + " belongs to an interface elsewhere");
  }
  // All that has happened comes to what there is.
  auto folded = folded_;
  for (const Event& event : events_) {
    const auto before = folded.find({event.subnet, event.address});
    const bool is_held = before != folded.end();
    if (is_held != event.from.has_value() || (is_held && before->second != *event.from)) {
      wrong.push_back(event.what + " of " + event.address.to_string() + " found another holder than there was");
    }
    if (event.to)
      folded[{event.subnet, event.address}] = *event.to;
    else
      folded.erase({event.subnet, event.address});
  }
  if (!std::ranges::equal(
          folded, held_, [](const auto& a, const auto& b) { return a.first == b.first && a.second == b.second.mac; })) {
    wrong.emplace_back("what happened does not come to what there is");
  }
  return wrong;
}

std::string World::truth(const Instant& now) const {
  Writer out = compact();
  const auto member = [&](std::string_view key, const std::string& value) {
    out.key(key);
    out.text(value);
  };
  const auto time = [&](std::string_view key, Span at) {
    out.key(key);
    out.raw(fmt::format("{:.3f}", milliseconds_of(at)));
  };
  out.begin_object();
  time("nowMs", now.since_boot);
  out.key("addresses");
  out.begin_array();
  for (const auto& [place, holding] : held_) {
    const Node* node = node_of(holding.mac);
    out.begin_object();
    member("subnet", place.first);
    member("ip", place.second.to_string());
    member("mac", holding.mac.to_string());
    member("node", node == nullptr ? "" : node->name);
    time("sinceMs", holding.since);
    time("usableAtMs", holding.usable_at);
    out.key("usable");
    out.boolean(holding.usable_at <= now.since_boot);
    out.end_object();
  }
  out.end_array();
  out.key("events");
  out.begin_array();
  for (const Event& event : events_) {
    out.begin_object();
    time("atMs", event.at);
    member("what", event.what);
    member("subnet", event.subnet);
    member("ip", event.address.to_string());
    member("from", event.from ? event.from->to_string() : "");
    member("to", event.to ? event.to->to_string() : "");
    out.end_object();
  }
  out.end_array();
  out.key("calls");
  out.begin_array();
  for (const CallSeen& call : calls_) {
    out.begin_object();
    time("atMs", call.at);
    member("action", call.action);
    out.key("retCode");
    out.integer(call.ret_code);
    member("fault", call.fault);
    out.end_object();
  }
  out.end_array();
  out.end_object();
  return std::move(out).take();
}

Reply World::control(std::string_view target, std::string_view body, const Instant& now) {
  if (target == "/sim/truth") return {200, truth(now), false};
  if (target == "/sim/check") {
    Writer out = compact();
    out.begin_array();
    for (const std::string& one : check()) out.text(one);
    out.end_array();
    return {200, std::move(out).take(), false};
  }
  const auto refused = [](const std::string& why) { return Reply{400, why + "\n", false}; };
  const auto parameters = wu::parse_form(body);
  if (!parameters) return refused(parameters.error().message);
  bool is_wrong = false;
  const auto number = [&](std::string_view name, std::int64_t otherwise) {
    const std::string text = text_in(*parameters, name);
    if (text.empty()) return otherwise;
    std::int64_t value = 0;
    for (const char c : text) {
      if (c < '0' || c > '9' || value > 1'000'000'000) {
        is_wrong = true;
        return otherwise;
      }
      value = value * 10 + (c - '0');
    }
    return value;
  };
  const auto between = [&] {
    const auto least = number("min_ms", 0);
    return Between{std::chrono::milliseconds(least), std::chrono::milliseconds(number("max_ms", least))};
  };
  const std::string what(target);
  if (target == "/sim/latency" || target == "/sim/flow") {
    const Between value = between();
    if (!is_wrong) (target == "/sim/flow" ? config_.flow : config_.latency) = value;
  } else if (target == "/sim/available-lag") {
    config_.available_lag = std::chrono::milliseconds(number("ms", 0));
  } else if (target == "/sim/rate") {
    const auto per_minute = static_cast<double>(number("per_minute", 0));
    const auto burst = static_cast<double>(std::max<std::int64_t>(number("burst", 1), 1));
    const std::string action = text_in(*parameters, "action");
    if (action.empty() || action.size() > 64 || buckets_.size() > 64) return refused("action: which?");
    if (!is_wrong) buckets_[action] = {burst, now.since_boot, per_minute / 60, burst};
  } else if (target == "/sim/fault") {
    const std::string kind = text_in(*parameters, "kind");
    Fault fault{Fault::Kind::lose, text_in(*parameters, "action"), number("value", 0),
                text_in(*parameters, "committed") != "false", static_cast<std::uint32_t>(number("count", 1))};
    if (kind == "hang")
      fault.kind = Fault::Kind::hang;
    else if (kind == "ret_code")
      fault.kind = Fault::Kind::ret_code;
    else if (kind == "http")
      fault.kind = Fault::Kind::http;
    else if (kind != "lose")
      return refused("kind: lose, hang, ret_code or http");
    if (fault.kind == Fault::Kind::http && (fault.value < 400 || fault.value > 599))
      return refused("value: 400 to 599");
    if (fault.action.empty() || fault.count == 0 || faults_.size() >= kFaultsMax) return refused("action or count");
    if (!is_wrong) faults_.push_back(fault);
  } else if (target == "/sim/fail-items") {
    fail_items_ = static_cast<std::uint32_t>(number("count", 1));
  } else if (target == "/sim/heal") {
    faults_.clear();
    exhausted_.clear();
    fail_items_ = 0;
    outage = Outage::none;
  } else if (target == "/sim/outage") {
    const std::string mode = text_in(*parameters, "mode");
    if (mode == "refuse")
      outage = Outage::refuse;
    else if (mode == "hang")
      outage = Outage::hang;
    else if (mode == "off")
      outage = Outage::none;
    else
      return refused("mode: refuse, hang or off");
  } else if (target == "/sim/exhaust") {
    const std::string subnet = text_in(*parameters, "subnet");
    if (subnet_of(subnet) == nullptr) return refused("subnet: there is none");
    if (text_in(*parameters, "on") == "false")
      exhausted_.erase(subnet);
    else
      exhausted_.insert(subnet);
  } else if (target == "/sim/expire-tokens") {
    tokens_.clear();
  } else if (target == "/sim/delete-address") {
    const auto address = net::Address::parse(text_in(*parameters, "ip"));
    const Place place{text_in(*parameters, "subnet"), address ? *address : net::Address()};
    if (!held_.contains(place)) return refused("subnet, ip: nobody has it");
    set(what, place, {}, now);
  } else if (target == "/sim/delete-node") {
    const std::string name = text_in(*parameters, "node");
    const auto node = std::ranges::find(config_.nodes, name, &Node::name);
    if (node == config_.nodes.end()) return refused("node: there is none");
    std::vector<Place> places;
    for (const auto& [place, holding] : held_) {
      if (holding.mac == node->mac) places.push_back(place);
    }
    for (const Place& place : places) set(what, place, {}, now);
    config_.nodes.erase(node);
  } else if (target == "/sim/replace-interface") {
    const std::string name = text_in(*parameters, "node");
    const auto node = std::ranges::find(config_.nodes, name, &Node::name);
    const auto mac = net::Mac::parse(text_in(*parameters, "mac"));
    if (node == config_.nodes.end()) return refused("node: there is none");
    if (!mac || node_of(*mac) != nullptr) return refused("mac: it is none, or another interface's");
    const bool goes_along = text_in(*parameters, "along") != "false";
    std::vector<Place> places;
    for (const auto& [place, holding] : held_) {
      if (holding.mac == node->mac) places.push_back(place);
    }
    node->mac = *mac;
    for (const Place& place : places) set(what, place, goes_along ? std::optional(*mac) : std::nullopt, now);
  } else {
    return {404, "no such path\n", false};
  }
  if (is_wrong) return refused("a number is none");
  return {200, "{}", false};
}

}  // namespace croft::cloud::simulator
