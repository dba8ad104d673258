#include "cni/format/error.h"

#include <string_view>

#include "base/json/writer.h"

namespace croft::wire::cni {
namespace {

std::string cut(std::string_view text) {
  if (text.size() <= kErrorTextBytesMax) return std::string(text);
  return std::string(text.substr(0, kErrorTextBytesMax)) + "...";
}

}  // namespace

std::string print_error(const Error& error) {
  JsonWriter out;
  out.begin_object();
  out.key("code");
  out.integer(static_cast<std::int64_t>(error.code));
  out.key("msg");
  out.text(cut(error.msg));
  if (!error.details.empty()) {
    out.key("details");
    out.text(cut(error.details));
  }
  out.end_object();
  return std::move(out).take();
}

}  // namespace croft::wire::cni
