// What networks a node has.

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "cni/format/network_list.h"
#include "install/door/installation.h"
#include "install/door/node_files.h"
#include "os/directory.h"
#include "os/files.h"

namespace croft::edge {
namespace {

using wire::InstallRecord;
using Kind = InstallRecord::Kind;
using Entry = InstallRecord::Entry;

}  // namespace

std::string Installation::programs_on_host() const {
  return os::absolute_path(place_.programs_on_host.empty() ? place_.programs : place_.programs_on_host);
}

std::string Installation::record_path() const { return path_in(place_.configurations, wire::kInstallRecordName); }

Result<InstallRecord> Installation::record() const {
  TRY(const auto text, content_of(record_path(), wire::kInstallRecordBytesMax));
  if (!text) return InstallRecord{};
  auto record = wire::decode_install_record(*text);
  if (record) return record;
  Error error = record.error().in(record_path());
  if (error.code == ErrorCode::corrupt) error.message += "; remove it: what it named is then left where it is";
  return fail(std::move(error));
}

Result<std::vector<std::string>> Installation::network_files() const {
  auto names = os::list_directory(place_.configurations, kNamesMax);
  if (!names && names.error().code == ErrorCode::not_found) return std::vector<std::string>();
  if (!names) return fail(names.error());
  std::erase_if(*names, [&](const std::string& name) {
    if (!wire::cni::is_network_file(name)) return true;
    const auto status = os::entry_status(path_in(place_.configurations, name));  // libcni passes over directories
    return status && *status && (*status)->type == os::FileStatus::Type::directory;
  });
  std::ranges::sort(*names);
  return *std::move(names);
}

NodeNetwork Installation::network(const InstallRecord& ours, const std::string& file) const {
  NodeNetwork network{file, {}, is_network_of_ours(ours, place_.configurations, file), {}, false, {}};
  network.has_our_name = std::ranges::any_of(
      ours.entries, [&](const Entry& entry) { return entry.kind == Kind::network && entry.name == file; });
  read_network(network, path_in(place_.configurations, file));
  return network;
}

void Installation::read_network(NodeNetwork& network, const std::string& path) const {
  auto text = os::read_file(path, wire::cni::kNetworkBytesMax);
  if (!text) {
    network.trouble = text.error().message;
    return;
  }
  network.text = *std::move(text);
  auto calls = calls_of(place_.configurations, network.file, network.text);
  if (!calls) {
    network.trouble = calls.error().message;
  } else {
    network.calls = *std::move(calls);
  }
}

Result<std::vector<NodeNetwork>> Installation::networks_in_use() const {
  std::vector<NodeNetwork> all;
  TRY(const std::vector<std::string> files, network_files());
  if (files.empty()) return all;
  TRY(const InstallRecord ours, record());
  bool is_behind = false;
  std::size_t bytes = 0;
  for (const std::string& file : files) {
    NodeNetwork& last = all.emplace_back(network(ours, file));
    last.is_behind = is_behind;
    bytes += last.text.size();
    if (bytes > kNetworksBytesMax) {
      return fail(ErrorCode::refused_by_configuration,
                  fmt::format("{} has more than {} MiB of network configurations: remove those that nobody needs",
                              place_.configurations, kNetworksBytesMax >> 20));
    }
    const bool calls_others = last.calls.names_another || !last.calls.delegates.empty();
    is_behind = is_behind || (!calls_others && is_surely_taken(last));
  }
  return all;
}

Result<std::vector<NodeNetwork>> Installation::networks_to_replace(const NextGiver& next, std::string_view text) const {
  TRY(auto all, networks_in_use());
  const auto same = std::ranges::find_if(all, [&](const NodeNetwork& there) {
    return (there.is_ours || there.text == text) && is_same(next, there.calls) && is_surely_taken(there);
  });
  if (same != all.end()) all.erase(std::next(same), all.end());
  return all;
}

bool Installation::is_surely_taken(const NodeNetwork& network) const {
  const wire::cni::NetworkCalls& calls = network.calls;
  if (!network.trouble.empty() || !calls.is_whole || calls.is_list != network.file.ends_with(".conflist")) return false;
  return std::ranges::all_of(calls.types, [&](const std::string& type) {
    const auto status = os::file_status(path_in(place_.programs, type));
    return status && *status;
  });
}

Result<RecordedNetwork> Installation::recorded_network() const {
  TRY(const InstallRecord ours, record());
  RecordedNetwork network{ours.network, ours.addresses_from, false, ours.store};
  if (!network.addresses_from.empty()) return network;
  // Of a version that does not note it: the programs that it wrote say it.
  for (const char* program : {"croft-ipam", "host-local"}) {
    const bool is_there = std::ranges::any_of(
        ours.entries, [&](const Entry& entry) { return entry.kind == Kind::program && entry.name == program; });
    if (!is_there) continue;
    network.addresses_from += fmt::format("{}{}", network.addresses_from.empty() ? "" : " or ", program);
    network.is_inferred = true;
  }
  return network;
}

Result<std::vector<NodeNetwork>> Installation::networks_to_come() const {
  TRY(const InstallRecord ours, record());
  TRY(const std::vector<std::string> files, network_files());
  std::set<std::string> names(files.begin(), files.end());
  for (const Entry& entry : ours.entries) {
    if (entry.kind == Kind::network) names.insert(entry.name);
  }
  std::vector<NodeNetwork> all;
  bool is_change = false;
  for (const std::string& name : names) {
    const std::string path = path_in(place_.configurations, name);
    TRY(const auto status, os::entry_status(path));
    NodeNetwork next = network(ours, name);
    if (next.has_our_name && (!status || next.is_ours)) {
      TRY(const std::string kept, network_to_come_back(path, [](const std::string&) {}));
      is_change = is_change || status || !kept.empty();
      if (kept.empty()) continue;
      next = NodeNetwork{name, {}, false, {}, false, {}};
      read_network(next, kept);
    }
    all.push_back(std::move(next));
  }
  if (!is_change) all.clear();
  return all;
}

Result<std::vector<NodeNetwork>> Installation::networks() const {
  TRY(const std::vector<std::string> files, network_files());
  TRY(const InstallRecord ours, record());
  std::vector<NodeNetwork> all;
  for (const std::string& file : files) {
    NodeNetwork one = network(ours, file);
    if (one.trouble.empty()) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace croft::edge
