// Reads any bytes with the reader of Croft's own JSON. Input: the calls, a letter each, up to the first line feed, then
// the text. Checked: nothing crashes; after an error nothing more is read; what was read as a whole, and written again,
// is the same bytes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "register/format/canonical_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t line = std::min(text.find('\n'), text.size());
  const std::string_view calls = text.substr(0, line);
  text.remove_prefix(std::min(line + 1, text.size()));
  croft::wire::CanonicalReader reader(text);
  croft::wire::CanonicalWriter writer(text.size());
  for (const char call : calls) {
    if (!reader.ok()) break;
    switch (call) {
      case 't':
        writer.text(reader.text());
        break;
      case 'u':
        writer.number(reader.unsigned_number());
        break;
      case 'i':
        writer.number(reader.signed_number());
        break;
      case 's':
        writer.number(std::uint64_t{reader.small_number(1000)});
        break;
      case 'b':
        writer.boolean(reader.boolean());
        break;
      case 'w':
        writer.time(reader.time());
        break;
      case 'm':
        writer.texts(reader.texts());
        break;
      case ',':
        writer.raw(reader.another(']') ? "," : "]");
        break;
      default:
        reader.expect(std::string(1, call));
        writer.raw(std::string(1, call));
    }
  }
  const bool ok = reader.ok();
  const auto done = reader.finish();
  if (!done) {
    CROFT_ASSERT(!done.error().message.empty());
    if (!ok) CROFT_ASSERT(reader.text().empty() && reader.unsigned_number() == 0 && !reader.accept("x"));
    return 0;
  }
  CROFT_ASSERT(writer.take() == text);
  return 0;
}
