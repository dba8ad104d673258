#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace croft::os {

// HTTP/2 by hand, for tests of what no library would send.

inline constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum class Http2Type : std::uint8_t {
  data = 0,
  headers = 1,
  priority = 2,
  rst_stream = 3,
  settings = 4,
  ping = 6,
  goaway = 7,
  window_update = 8,
  continuation = 9,
  unknown = 99,
};
inline constexpr std::uint8_t kAck = 1;
inline constexpr std::uint8_t kEndStream = 1;
inline constexpr std::uint8_t kEndHeaders = 4;

inline std::string big_endian(std::uint64_t value, unsigned bytes) {
  std::string text;
  for (unsigned i = bytes; i-- > 0;) text += static_cast<char>((value >> (8U * i)) & 0xFFU);
  return text;
}

inline std::string http2_frame(Http2Type type, std::uint8_t flags, std::uint32_t stream,
                               std::string_view payload = {}) {
  std::string frame = big_endian(payload.size(), 3);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  return frame + big_endian(stream, 4) + std::string(payload);
}

/// As HPACK has it: literal, not indexed, not compressed.
inline std::string hpack_text(std::string_view text) {
  constexpr std::size_t kShort = 127;
  std::string out;
  if (text.size() < kShort) {
    out += static_cast<char>(text.size());
  } else {
    out += static_cast<char>(kShort);
    std::size_t rest = text.size() - kShort;
    for (; rest >= 128; rest /= 128) out += static_cast<char>(rest % 128 + 128);
    out += static_cast<char>(rest);
  }
  return out.append(text);
}

using Http2Fields = std::vector<std::pair<std::string, std::string>>;

inline std::string hpack(const Http2Fields& fields) {
  std::string block;
  for (const auto& [name, value] : fields) block += std::string(1, '\0') + hpack_text(name) + hpack_text(value);
  return block;
}

/// The headers of a gRPC request, but for the named fields, which are replaced; an empty value leaves one out.
inline Http2Fields grpc_fields(std::string_view path, const Http2Fields& instead = {}) {
  Http2Fields fields;
  for (auto& [name, value] : Http2Fields{{":method", "POST"},
                                         {":scheme", "http"},
                                         {":path", std::string(path)},
                                         {":authority", "localhost"},
                                         {"te", "trailers"},
                                         {"content-type", "application/grpc"}}) {
    bool replaced = false;
    for (const auto& other : instead) replaced = replaced || other.first == name;
    if (!replaced) fields.emplace_back(name, value);
  }
  for (const auto& [name, value] : instead) {
    const auto place = name.starts_with(':') ? fields.begin() : fields.end();
    if (!value.empty()) fields.emplace(place, name, value);
  }
  return fields;
}

/// What every client begins with.
inline std::string http2_greeting() { return std::string(kHttp2Preface) + http2_frame(Http2Type::settings, 0, 0); }

inline std::string grpc_headers(std::uint32_t stream, std::string_view path, const Http2Fields& instead = {},
                                std::uint8_t flags = kEndHeaders) {
  return http2_frame(Http2Type::headers, flags, stream, hpack(grpc_fields(path, instead)));
}

/// A body, in frames of the size that every peer takes.
inline std::string http2_data(std::uint32_t stream, std::string_view bytes, bool end = true) {
  constexpr std::size_t kFrameMax = 16384;
  std::string frames;
  do {
    const std::string_view part = bytes.substr(0, kFrameMax);
    bytes.remove_prefix(part.size());
    frames += http2_frame(Http2Type::data, end && bytes.empty() ? kEndStream : 0, stream, part);
  } while (!bytes.empty());
  return frames;
}

}  // namespace croft::os
