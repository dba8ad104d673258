#pragma once

// A record's members in one table, by which it is both written and read:
//
//     constexpr auto kPool = fields(field("name", &Pool::name), maybe("gateway", &Pool::gateway), …);
//     kPool.write(out, pool);   // "name":"a","gateway":"10.0.0.1",…
//     kPool.read(in, pool);     // the same, in this order; the first difference is the reader's error
//
// What is read replaces what a member had, and one that is left out stays as it was. A table is a constant; what it
// says is laid out by the compiler as if each member were spelled by hand, twice. How a value is spelled follows from
// its type (`Plain`), unless the field names another form. Only register/format and the formats that lie beside its
// records use it: it reads nothing but what it writes.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/shared_map.h"
#include "base/strong.h"
#include "base/texts.h"
#include "register/block.h"
#include "register/format/canonical_json.h"

namespace croft::wire {

/// More elements than any record below kRecordBytesMax of use has; a longer list is damage.
inline constexpr std::size_t kListMax = 200'000;
/// For lists that the record's length alone bounds.
inline constexpr std::size_t kNoListMax = std::numeric_limits<std::size_t>::max();

/// The text before a member: nothing, the brace of its object, or the comma behind the member before it.
enum class Lead : std::uint8_t { none, brace, comma };

// Forms. Each has write(out, value) and read(in, value), which leaves the reader failed when the value is spelled in
// any other way.

template <class Form, class List>
void write_list(CanonicalWriter& out, const Form& form, const List& list) {
  std::string_view separator = "[";
  for (const auto& element : list) {
    out.raw(separator);
    form.write(out, element);
    separator = ",";
  }
  out.raw(separator == "[" ? "[]" : "]");
}

/// Reads at most `max` elements. `read_one` fills a fresh one, the last of `list`.
template <class T, class ReadOne>
void read_list(CanonicalReader& in, std::size_t max, std::vector<T>& list, ReadOne read_one) {
  list.clear();  // what a new record has by default
  in.expect("[");
  if (in.accept("]")) return;
  do {
    if (list.size() >= max) in.reject("list too long");
    read_one(list.emplace_back());
  } while (in.another(']'));
}

/// A value by its canonical text. `what` it is, for the reader's error.
template <class T>
void read_canonical(CanonicalReader& in, T& value, std::string_view what) {
  const std::string text = in.text();
  const auto parsed = T::parse(text);
  if (!parsed || parsed->to_string() != text) {
    return in.reject(std::string("no ").append(what) + " in its canonical form \"" + text + "\"");
  }
  value = *parsed;
}

/// The form of a type that has only one.
struct Plain {
  static void write(CanonicalWriter& out, bool value) { out.boolean(value); }
  static void read(CanonicalReader& in, bool& value) { value = in.boolean(); }

  static void write(CanonicalWriter& out, std::uint64_t value) { out.number(value); }
  static void read(CanonicalReader& in, std::uint64_t& value) { value = in.unsigned_number(); }
  static void write(CanonicalWriter& out, std::uint32_t value) { out.number(std::uint64_t{value}); }
  static void read(CanonicalReader& in, std::uint32_t& value) { value = in.small_number(); }
  static void write(CanonicalWriter& out, std::uint16_t value) { out.number(std::uint64_t{value}); }
  static void read(CanonicalReader& in, std::uint16_t& value) {
    value = static_cast<std::uint16_t>(in.small_number(std::numeric_limits<std::uint16_t>::max()));
  }
  template <class Tag>
  static void write(CanonicalWriter& out, const Strong<Tag, std::uint64_t>& value) {
    out.number(value.value);
  }
  template <class Tag>
  static void read(CanonicalReader& in, Strong<Tag, std::uint64_t>& value) {
    value.value = in.unsigned_number();
  }

  static void write(CanonicalWriter& out, const std::string& value) { out.text(value); }
  static void read(CanonicalReader& in, std::string& value) { value = in.text(); }

  static void write(CanonicalWriter& out, WallTime value) { out.time(value); }
  static void read(CanonicalReader& in, WallTime& value) { value = in.time(); }
  /// A whole number in the duration's own unit, which the member's name tells.
  template <class Period>
  static void write(CanonicalWriter& out, std::chrono::duration<std::int64_t, Period> value) {
    out.number(std::int64_t{value.count()});
  }
  template <class Period>
  static void read(CanonicalReader& in, std::chrono::duration<std::int64_t, Period>& value) {
    value = std::chrono::duration<std::int64_t, Period>{in.signed_number()};
  }

  static void write(CanonicalWriter& out, const net::Prefix& prefix) { out.text(prefix.to_string()); }
  static void read(CanonicalReader& in, net::Prefix& value) { read_canonical(in, value, "CIDR"); }
  static void write(CanonicalWriter& out, const net::Address& address) { out.text(address.to_string()); }
  static void read(CanonicalReader& in, net::Address& value) { read_canonical(in, value, "IP address"); }

  static void write(CanonicalWriter& out, const std::map<std::string, std::string>& members) { out.texts(members); }
  static void read(CanonicalReader& in, std::map<std::string, std::string>& members) { members = in.texts(); }
  static void write(CanonicalWriter& out, const SharedMap<std::string, std::string>& members) { out.texts(members); }
  static void read(CanonicalReader& in, SharedMap<std::string, std::string>& members) { members = in.texts(); }

  /// An object whose members are the entries, ascending by name.
  template <class T>
  static void write(CanonicalWriter& out, const std::map<std::string, T>& entries) {
    std::string_view separator = "{";
    for (const auto& [name, value] : entries) {
      out.raw(separator).text(name).raw(":");
      write(out, value);
      separator = ",";
    }
    out.raw(entries.empty() ? "{}" : "}");
  }
  template <class T>
  static void read(CanonicalReader& in, std::map<std::string, T>& entries) {
    entries.clear();
    if (in.accept("{}")) return;
    in.expect("{");
    do {
      std::string name = in.text();
      in.expect(":");
      if (!entries.empty() && entries.rbegin()->first >= name) in.reject("member out of order");
      T value{};
      read(in, value);
      entries.emplace_hint(entries.end(), std::move(name), value);
    } while (in.another('}'));
  }

  template <class T>
  static void write(CanonicalWriter& out, const std::vector<T>& list) {
    write_list(out, Plain{}, list);
  }
  template <class T>
  static void read(CanonicalReader& in, std::vector<T>& list) {
    read_list(in, kListMax, list, [&](T& element) { read(in, element); });
  }
};

/// A whole number from 0 to `max`, of any type of integer that holds it.
struct UpTo {
  std::uint32_t max;
  template <class Integer>
  void write(CanonicalWriter& out, Integer value) const {
    out.number(static_cast<std::int64_t>(value));
  }
  template <class Integer>
  void read(CanonicalReader& in, Integer& value) const {
    value = static_cast<Integer>(in.small_number(max));
  }
};

/// One of an enumeration's words; the first of them after an error.
template <const auto& kWords>
struct OneOf {
  template <class Enum>
  static void write(CanonicalWriter& out, Enum value) {
    out.text(word_in(kWords, value));
  }
  template <class Enum>
  static void read(CanonicalReader& in, Enum& value) {
    const std::string found = in.text();
    const auto known = value_in(kWords, found);
    if (!known) in.reject("unknown name \"" + found + "\"");
    value = known.value_or(kWords[0].second);
  }
};

/// A list whose elements have a form of their own.
template <class Form>
struct ListOf {
  Form form{};
  std::size_t max = kListMax;
  template <class T>
  void write(CanonicalWriter& out, const std::vector<T>& list) const {
    write_list(out, form, list);
  }
  template <class T>
  void read(CanonicalReader& in, std::vector<T>& list) const {
    read_list(in, max, list, [&](T& element) { form.read(in, element); });
  }
};

/// null when there is nothing.
template <class Form = Plain>
struct OrNull {
  Form form{};
  template <class T>
  void write(CanonicalWriter& out, const std::optional<T>& value) const {
    value ? form.write(out, *value) : static_cast<void>(out.raw("null"));
  }
  template <class T>
  void read(CanonicalReader& in, std::optional<T>& value) const {
    if (!in.accept("null")) form.read(in, value.emplace());
  }
};

/// An object whose members a table tells.
template <const auto& kTable>
struct Object {
  template <class Record>
  static void write(CanonicalWriter& out, const Record& record) {
    kTable.write(out, record, Lead::brace);
    out.raw("}");
  }
  template <class Record>
  static void read(CanonicalReader& in, Record& record) {
    kTable.read(in, record, Lead::brace);
    in.expect("}");
  }
};

/// The way to a member of a member.
template <class Outer, class Inner>
struct Within {
  Outer outer;
  Inner inner;
  template <class Record>
  constexpr auto& operator()(Record& record) const {
    return std::invoke(inner, std::invoke(outer, record));
  }
};
template <class Outer, class Inner>
Within(Outer, Inner) -> Within<Outer, Inner>;

/// A member's name as it stands in the text, with what is before and behind it.
template <std::size_t kNameBytes>
class MemberName {
 public:
  constexpr explicit MemberName(const char (&name)[kNameBytes + 1]) {
    text_[1] = '"';
    for (std::size_t i = 0; i < kNameBytes; ++i) text_[i + 2] = name[i];
    text_[kNameBytes + 2] = '"';
    text_[kNameBytes + 3] = ':';
    text_[0] = ',';
    braced_ = text_;
    braced_[0] = '{';
  }
  [[nodiscard]] constexpr std::string_view after(Lead lead) const {
    const auto& text = lead == Lead::brace ? braced_ : text_;
    return std::string_view(text.data(), text.size()).substr(lead == Lead::none ? 1 : 0);
  }

 private:
  std::array<char, kNameBytes + 4> text_{};
  std::array<char, kNameBytes + 4> braced_{};
};

template <std::size_t kNameBytes, class Get, class Form, bool kMayLack>
struct Field {
  MemberName<kNameBytes> name;
  Get get;
  Form form;

  template <class Record>
  void write(CanonicalWriter& out, const Record& record, Lead lead) const {
    const auto& value = std::invoke(get, record);
    if constexpr (kMayLack) {
      if (lacks(value)) return;
    }
    out.raw(name.after(lead));
    if constexpr (kMayLack && requires { *value; }) {
      form.write(out, *value);
    } else {
      form.write(out, value);
    }
  }
  template <class Record>
  void read(CanonicalReader& in, Record& record, Lead lead) const {
    auto& value = std::invoke(get, record);
    if constexpr (!kMayLack) {
      in.expect(name.after(lead));
      form.read(in, value);
    } else {
      if (!in.accept(name.after(lead))) return;
      if constexpr (requires { *value; }) {
        form.read(in, value.emplace());
      } else {
        form.read(in, value);
      }
      if constexpr (std::is_arithmetic_v<std::remove_reference_t<decltype(value)>>) {
        if (in.ok() && !value) in.reject("a false or zero that is left out");
      }
    }
  }

 private:
  template <class T>
  static bool lacks(const T& value) {
    if constexpr (requires { value.empty(); }) return value.empty();
    if constexpr (!requires { value.empty(); }) return !value;
  }
};

/// A member that is always there. With std::identity its form makes it of the whole record.
template <std::size_t kBytes, class Get, class Form = Plain>
constexpr auto field(const char (&name)[kBytes], Get get, Form form = {}) {
  return Field<kBytes - 1, Get, Form, false>{MemberName<kBytes - 1>(name), get, form};
}
/// One that is left out when it is an empty std::optional, map or list, false or zero. Never the first of a table.
template <std::size_t kBytes, class Get, class Form = Plain>
constexpr auto maybe(const char (&name)[kBytes], Get get, Form form = {}) {
  return Field<kBytes - 1, Get, Form, true>{MemberName<kBytes - 1>(name), get, form};
}

/// A field whose value has to fit the members before it.
template <class Inner, class Holds>
struct Checked {
  Inner inner;
  Holds holds;
  std::string_view why;  ///< it does not: the reader's error

  template <class Record>
  void write(CanonicalWriter& out, const Record& record, Lead lead) const {
    inner.write(out, record, lead);
  }
  template <class Record>
  void read(CanonicalReader& in, Record& record, Lead lead) const {
    inner.read(in, record, lead);
    if (in.ok() && !holds(record)) in.reject(why);
  }
};
template <class Inner, class Holds>
constexpr auto checked(Inner inner, Holds holds, std::string_view why) {
  return Checked<Inner, Holds>{inner, holds, why};
}

/// The members of a part among those of the record; all of them or, where the part is a std::optional, none.
template <const auto& kTable, class Get>
struct Spread {
  Get get;
  template <class Record>
  void write(CanonicalWriter& out, const Record& record, Lead lead) const {
    write_part(out, std::invoke(get, record), lead);
  }
  template <class Record>
  void read(CanonicalReader& in, Record& record, Lead lead) const {
    read_part(in, std::invoke(get, record), lead);
  }

 private:
  template <class Part>
  static void write_part(CanonicalWriter& out, const Part& part, Lead lead) {
    kTable.write(out, part, lead);
  }
  template <class Part>
  static void write_part(CanonicalWriter& out, const std::optional<Part>& part, Lead lead) {
    if (part) kTable.write(out, *part, lead);
  }
  /// Behind the comma, which tells whether there is an optional one.
  template <class Part>
  static void read_part(CanonicalReader& in, Part& part, Lead lead) {
    if (lead == Lead::comma) in.expect(",");
    kTable.read(in, part, lead == Lead::comma ? Lead::none : lead);
  }
  template <class Part>
  static void read_part(CanonicalReader& in, std::optional<Part>& part, Lead) {
    if (in.accept(",")) kTable.read(in, part.emplace(), Lead::none);
  }
};
template <const auto& kTable, class Get>
constexpr auto spread(Get get) {
  return Spread<kTable, Get>{get};
}

/// The members of a record, in the order in which they stand.
template <class... Members>
struct Fields {
  std::tuple<Members...> members;

  /// `lead` is what stands before the first.
  template <class Record>
  void write(CanonicalWriter& out, const Record& record, Lead lead = Lead::none) const {
    const auto write_each = [&](const auto& first, const auto&... others) {
      first.write(out, record, lead);
      (others.write(out, record, Lead::comma), ...);
    };
    std::apply(write_each, members);
  }
  template <class Record>
  void read(CanonicalReader& in, Record& record, Lead lead = Lead::none) const {
    const auto read_each = [&](const auto& first, const auto&... others) {
      first.read(in, record, lead);
      (others.read(in, record, Lead::comma), ...);
    };
    std::apply(read_each, members);
  }
};
template <class... Members>
constexpr auto fields(Members... members) {
  return Fields<Members...>{{members...}};
}

/// The member `cooling` of a record of Calico's datastore (calico/records.cc): the addresses that cool beside a block.
void write_cooling_beside(CanonicalWriter& out, const std::vector<core::CoolingBeside>& beside);
void read_cooling_beside(CanonicalReader& in, std::vector<core::CoolingBeside>& beside);

}  // namespace croft::wire
