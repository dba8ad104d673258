#pragma once

// The frame that Calico's v3 resources share: kind, version, metadata. Private to calico.

#include <span>
#include <string>
#include <string_view>

#include "calico/json.h"
#include "calico/resources.h"

namespace croft::wire::calico {

/// A resource while it is read: the parts that every one has.
struct Frame {
  std::string_view kind;  ///< what it must be
  std::string name;       ///< of the key
  bool has_name = false;  ///< the metadata name it so
  bool terminating = false;
  Metadata metadata;
};

[[nodiscard]] MaybeFault read_kind(const JsonAt& at, Frame& frame);
[[nodiscard]] MaybeFault read_api_version(const JsonAt& at);
[[nodiscard]] MaybeFault read_metadata(const JsonAt& at, Frame& frame);

/// Opens the resource: everything before its spec.
void begin_resource(JsonWriter& out, std::string_view kind, const std::string& name, const Metadata& metadata,
                    const std::map<std::string, std::string>& labels);

/// The members behind the spec of a resource.
inline constexpr std::string_view kBehindSpec[] = {"status"};

/// Writes those of `members` with these names, in this order.
void write_some(JsonWriter& out, const RawMembers& members, std::span<const std::string_view> names);
/// Writes those of `members` without these names, as found.
void write_others(JsonWriter& out, const RawMembers& members, std::span<const std::string_view> names);

/// A text that is left out when it is empty.
void write_text_if_set(JsonWriter& out, std::string_view name, std::string_view value);
void write_if_set(JsonWriter& out, std::string_view name, bool value);

}  // namespace croft::wire::calico
