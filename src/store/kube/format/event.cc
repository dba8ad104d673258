#include "store/kube/format/event.h"

#include <chrono>

#include "base/json/writer.h"
#include "base/time_text.h"

namespace croft::wire::kube {

std::string cut_text(const std::string& text, std::size_t bytes_max) {
  constexpr std::string_view kCut = "…";
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max - kCut.size();
  const auto is_inside = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  while (end > 0 && is_inside(text[end])) --end;
  return text.substr(0, end).append(kCut);
}

std::string namespace_of_event(const Regarding& regarding) {
  return regarding.name_space.empty() ? "default" : regarding.name_space;
}

std::string encode_event(const Event& event) {
  const std::string at = rfc3339_exact(std::chrono::floor<std::chrono::seconds>(event.at));
  const Regarding& about = event.regarding;
  JsonWriter out(JsonWriter::Layout::compact);
  const auto member = [&](std::string_view name, std::string_view text) {
    if (text.empty()) return;
    out.key(name);
    out.text(text);
  };
  out.begin_object();
  member("apiVersion", "v1");
  member("kind", "Event");
  out.key("metadata");
  out.begin_object();
  member("name", event.name);
  member("namespace", namespace_of_event(about));
  out.end_object();
  out.key("involvedObject");
  out.begin_object();
  member("apiVersion", about.api_version);
  member("kind", about.kind);
  member("namespace", about.name_space);
  member("name", about.name);
  member("uid", about.uid);
  out.end_object();
  member("type", event.type == Event::Type::normal ? "Normal" : "Warning");
  member("reason", event.reason);
  member("message", cut_text(event.message, kEventMessageMax));
  out.key("source");
  out.begin_object();
  member("component", event.component);
  member("host", event.host);
  out.end_object();
  member("firstTimestamp", at);
  member("lastTimestamp", at);
  out.key("count");
  out.integer(1);
  member("action", event.action);
  member("reportingComponent", event.component);
  member("reportingInstance", event.host);
  out.end_object();
  return std::move(out).take();
}

}  // namespace croft::wire::kube
