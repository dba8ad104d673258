#include "calico/metadata.h"

#include <algorithm>

#include <fmt/format.h>

namespace croft::wire::calico {
namespace {

constexpr std::string_view kApiVersion = "projectcalico.org/v3";

// The members of metadata that are passed on, where Kubernetes' library writes them.
constexpr std::string_view kBehindName[] = {"generateName", "namespace"};
constexpr std::string_view kBehindUid[] = {"generation"};
constexpr std::string_view kBehindCreation[] = {"deletionTimestamp", "deletionGracePeriodSeconds"};
constexpr std::string_view kBehindLabels[] = {"annotations", "ownerReferences", "finalizers", "managedFields"};
constexpr std::string_view kPassedOn[] = {
    "generateName", "namespace",       "generation", "deletionTimestamp", "deletionGracePeriodSeconds",
    "annotations",  "ownerReferences", "finalizers", "managedFields"};

/// For what is read and not kept.
MaybeFault pass_over(const JsonAt&, Frame&) { return {}; }

constexpr JsonMember<Frame> kMetadataMembers[] = {
    {"name",
     [](const JsonAt& at, Frame& out) {
       std::string name;
       if (auto fault = read_text(at, kTextBytesMax, name)) return fault;
       out.has_name = name == out.name;
       return out.has_name ? MaybeFault() : at.bad_value(net::echo(name) + " is not that of the key");
     }},
    {"selfLink", pass_over},
    {"uid", [](const JsonAt& at, Frame& out) { return read_text(at, kTextBytesMax, out.metadata.uid); }},
    {"resourceVersion", pass_over},
    {"creationTimestamp",
     [](const JsonAt& at, Frame& out) {
       return at.value.is_null() ? MaybeFault() : read_time(at, out.metadata.created.emplace());
     }},
    {"deletionTimestamp",
     [](const JsonAt& at, Frame& out) {
       WallTime time;
       if (at.value.is_null()) return MaybeFault();
       out.terminating = true;
       out.metadata.rest.push_back(raw_member(at.value));
       return read_time(at, time);
     }},
    {"labels", [](const JsonAt& at, Frame& out) { return read_texts(at, out.metadata.labels); }},
};

}  // namespace

MaybeFault read_kind(const JsonAt& at, Frame& frame) {
  std::string kind;
  if (auto fault = read_text(at, kTextBytesMax, kind)) return fault;
  return kind == frame.kind ? MaybeFault() : at.bad_value(fmt::format("{} is not {}", net::echo(kind), frame.kind));
}

MaybeFault read_api_version(const JsonAt& at) {
  std::string version;
  if (auto fault = read_text(at, kTextBytesMax, version)) return fault;
  return version == kApiVersion ? MaybeFault()
                                : at.bad_value(fmt::format("{} is not {}", net::echo(version), kApiVersion));
}

MaybeFault read_metadata(const JsonAt& at, Frame& frame) {
  return read_kept<Frame>(at, kMetadataMembers, frame, frame.metadata.rest);
}

void begin_resource(JsonWriter& out, std::string_view kind, const std::string& name, const Metadata& metadata,
                    const std::map<std::string, std::string>& labels) {
  out.begin_object();
  out.key("kind");
  out.text(kind);
  out.key("apiVersion");
  out.text(kApiVersion);
  out.key("metadata");
  out.begin_object();
  out.key("name");
  out.text(name);
  write_some(out, metadata.rest, kBehindName);
  write_text_if_set(out, "uid", metadata.uid);
  write_some(out, metadata.rest, kBehindUid);
  out.key("creationTimestamp");
  metadata.created ? write_time(out, *metadata.created) : out.null();
  write_some(out, metadata.rest, kBehindCreation);
  if (!labels.empty()) {
    out.key("labels");
    write_texts(out, labels);
  }
  write_some(out, metadata.rest, kBehindLabels);
  write_others(out, metadata.rest, kPassedOn);
  out.end_object();
}

void write_some(JsonWriter& out, const RawMembers& members, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    for (const RawMember& member : members) {
      if (member.name != name) continue;
      out.key(member.name);
      out.raw(member.json);
    }
  }
}

void write_others(JsonWriter& out, const RawMembers& members, std::span<const std::string_view> names) {
  for (const RawMember& member : members) {
    if (std::ranges::find(names, member.name) != names.end()) continue;
    out.key(member.name);
    out.raw(member.json);
  }
}

void write_text_if_set(JsonWriter& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out.key(name);
  out.text(value);
}

void write_if_set(JsonWriter& out, std::string_view name, bool value) {
  if (!value) return;
  out.key(name);
  out.boolean(value);
}

}  // namespace croft::wire::calico
