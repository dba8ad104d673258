#include "install/format/record.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/json/decode.h"
#include "base/json/document.h"
#include "base/json/writer.h"

namespace croft::wire {
namespace {

using Entry = InstallRecord::Entry;
using Kind = InstallRecord::Kind;

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kKindBytesMax = 16;
constexpr std::size_t kDigestBytes = 64;
constexpr ObjectRules kRules{.names = ObjectRules::Names::exact, .repeated = ObjectRules::Repeated::fault};

struct KindName {
  std::string_view text;
  Kind kind;
};
constexpr std::array<KindName, 3> kKinds = {
    {{"program", Kind::program}, {"kubeconfig", Kind::kubeconfig}, {"network", Kind::network}}};

struct Read {
  InstallRecord record;
  std::int64_t version = 0;
};

MaybeFault read_kind(const JsonAt& at, Entry& out) {
  std::string text;
  if (auto fault = read_text(at, kKindBytesMax, text)) return fault;
  for (const KindName& known : kKinds) {
    if (known.text != text) continue;
    out.kind = known.kind;
    return {};
  }
  return at.bad_value("it is none of program, kubeconfig, network");
}

MaybeFault read_name(const JsonAt& at, Entry& out) {
  if (auto fault = read_text(at, kInstallNameBytesMax, out.name)) return fault;
  if (!is_install_name(out.name)) return at.bad_value("it is no plain name of a file in a directory");
  return {};
}

MaybeFault read_digest(const JsonAt& at, Entry& out) {
  if (auto fault = read_text(at, kDigestBytes, out.sha256)) return fault;
  const bool is_digest = out.sha256.empty() || (out.sha256.size() == kDigestBytes &&
                                                out.sha256.find_first_not_of("0123456789abcdef") == std::string::npos);
  if (!is_digest) return at.bad_value("it is no SHA-256 in hexadecimal");
  return {};
}

constexpr std::array<JsonMember<Entry>, 3> kEntryMembers{
    {{"kind", read_kind}, {"name", read_name}, {"sha256", read_digest}}};

MaybeFault read_entry(const JsonAt& at, Entry& out) {
  if (at.value.is_null()) return at.bad_value("it is null");
  if (auto fault = read_object<Entry>(at, kEntryMembers, out, kRules)) return fault;
  if (out.name.empty()) return at.bad_value("it has no name");
  return {};
}

MaybeFault read_directory(const JsonAt& at, std::string& out) {
  if (auto fault = read_text(at, kInstallDirectoryBytesMax, out)) return fault;
  if (!out.starts_with('/')) return at.bad_value("it is no absolute path");
  return {};
}

constexpr std::array<JsonMember<Read>, 6> kMembers{{
    {"version", [](const JsonAt& at, Read& out) { return read_integer(at, 1, INT32_MAX, out.version); }},
    {"files", [](const JsonAt& at,
                 Read& out) { return read_list<Entry>(at, kInstallEntriesMax, read_entry, out.record.entries); }},
    {"programDirectories",
     [](const JsonAt& at, Read& out) {
       return read_list<std::string>(at, kInstallDirectoriesMax, read_directory, out.record.program_directories);
     }},
    {"network", [](const JsonAt& at, Read& out) { return read_text(at, kInstallNetworkBytesMax, out.record.network); }},
    {"addressesFrom",
     [](const JsonAt& at, Read& out) { return read_text(at, kInstallNameBytesMax, out.record.addresses_from); }},
    {"store", [](const JsonAt& at, Read& out) { return read_text(at, kInstallStoreBytesMax, out.record.store); }},
}};

}  // namespace

bool is_install_name(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  return !name.empty() && name.size() <= kInstallNameBytesMax && name.front() != '.' &&
         std::ranges::all_of(name, is_plain);
}

bool add_to(InstallRecord& record, Entry entry) {
  auto& entries = record.entries;
  const auto is_same_name = [&](const Entry& other) { return other.kind == entry.kind && other.name == entry.name; };
  std::size_t newest = entries.size();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (is_same_name(entries[i])) newest = i;
  }
  if (newest < entries.size() && entries[newest] == entry) return false;
  std::erase(entries, entry);
  while (static_cast<std::size_t>(std::ranges::count_if(entries, is_same_name)) >= kInstallVersionsMax) {
    entries.erase(std::ranges::find_if(entries, is_same_name));
  }
  entries.push_back(std::move(entry));
  return true;
}

bool add_program_directory(InstallRecord& record, const std::string& path) {
  const auto is_printable = [](char c) { return c >= 0x20 && c < 0x7f; };
  auto& all = record.program_directories;
  if (!all.empty() && all.back() == path) return false;
  if (!path.starts_with('/') || path.size() > kInstallDirectoryBytesMax || !std::ranges::all_of(path, is_printable)) {
    return false;
  }
  std::erase(all, path);
  if (all.size() >= kInstallDirectoriesMax) all.erase(all.begin());
  all.push_back(path);
  return true;
}

bool set_network(InstallRecord& record, std::string_view name, std::string_view addresses_from,
                 std::string_view store) {
  if (name.size() > kInstallNetworkBytesMax) name = {};
  if (name.empty() || addresses_from.size() > kInstallNameBytesMax) addresses_from = {};
  if (addresses_from.empty() || store.size() > kInstallStoreBytesMax) store = {};
  if (record.network == name && record.addresses_from == addresses_from && record.store == store) return false;
  record.network = name;
  record.addresses_from = addresses_from;
  record.store = store;
  return true;
}

std::string encode(const InstallRecord& record) {
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  out.key("version");
  out.integer(kVersion);
  out.key("files");
  out.begin_array();
  for (const Entry& entry : record.entries) {
    out.begin_object();
    out.key("kind");
    out.text(kKinds.at(static_cast<std::size_t>(entry.kind)).text);
    out.key("name");
    out.text(entry.name);
    out.key("sha256");
    out.text(entry.sha256);
    out.end_object();
  }
  out.end_array();
  if (!record.program_directories.empty()) {
    out.key("programDirectories");
    out.begin_array();
    for (const std::string& directory : record.program_directories) out.text(directory);
    out.end_array();
  }
  if (!record.network.empty()) {
    out.key("network");
    out.text(record.network);
  }
  if (!record.addresses_from.empty()) {
    out.key("addressesFrom");
    out.text(record.addresses_from);
  }
  if (!record.store.empty()) {
    out.key("store");
    out.text(record.store);
  }
  out.end_object();
  return std::move(out).take() + "\n";
}

Result<InstallRecord> decode_install_record(std::string_view json) {
  const auto document = parse_json(json, {.bytes_max = kInstallRecordBytesMax});
  if (!document) return fail(ErrorCode::corrupt, document.error().message);
  Read read;
  const MaybeFault fault = read_object<Read>(JsonAt{document->root(), nullptr, {}, {}}, kMembers, read, kRules);
  if (read.version > kVersion) {
    return fail(ErrorCode::newer_version,
                fmt::format("version: {} is newer than this program, which knows {}", read.version, kVersion));
  }
  if (fault) return fail(ErrorCode::corrupt, fault->to_string());
  if (read.version != kVersion) return fail(ErrorCode::corrupt, "version: is missing");
  return std::move(read.record);
}

}  // namespace croft::wire
