#include <algorithm>
#include <cstring>

#include "calico/json.h"
#include "register/format/canonical_json.h"

namespace croft::wire::calico {
namespace {

using core::Attribute;

constexpr auto kOrdinalMax = static_cast<std::uint32_t>(kBlockSizeMax - 1);

bool is_ascii(std::string_view text) {
  std::uint64_t all = 0;
  std::size_t at = 0;
  for (std::uint64_t word = 0; text.size() - at >= sizeof word; at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    all |= word;
  }
  for (; at < text.size(); ++at) all |= static_cast<unsigned char>(text[at]);
  return (all & 0x8080808080808080U) == 0;
}

/// Reads `[a,b,c]`.
template <class T, class ReadOne>
std::vector<T> scan_list(CanonicalReader& in, std::size_t count_expected, ReadOne read_one) {
  std::vector<T> list;
  in.expect("[");
  if (in.accept("]")) return list;
  list.reserve(count_expected);
  do {
    if (list.size() == kBlockSizeMax) in.reject("list longer than a block");
    read_one(list.emplace_back());
  } while (in.another(']'));
  return list;
}

void scan_owner(CanonicalReader& in, core::Block& block) {
  in.expect(",\"affinity\":");
  if (!in.accept("null")) {
    const auto owner = core::parse_affinity_owner(in.text());
    if (!owner) return in.reject("no owner");
    block.affinity = *owner;
  }
  if (in.accept(",\"affinity_claim_time\":")) block.affinity_claim_time = in.time_of_others();
}

void scan_attribute(CanonicalReader& in, Attribute& attribute) {
  bool is_first = true;
  // `name` begins with the comma that a first member doesn't have.
  const auto has = [&](std::string_view name) {
    if (!in.accept(is_first ? name.substr(1) : name)) return false;
    is_first = false;
    return true;
  };
  in.expect("{");
  if (has(",\"handle_id\":")) attribute.handle_id = in.text();
  if (has(",\"secondary\":")) attribute.secondary = in.texts();
  if (has(",\"alternateOwnerAttrs\":")) attribute.alternate_owner = in.texts();
  if (has(",\"releasedAt\":")) attribute.cooling.emplace().released_at.wall = in.time_of_others();
  in.expect("}");
}

void scan_sequence_numbers(CanonicalReader& in, std::map<std::uint32_t, core::SequenceNumber>& numbers) {
  if (in.accept("{}")) return;
  in.expect("{");
  do {
    in.expect("\"");
    const std::uint32_t ordinal = in.small_number();
    in.expect("\":");
    if (!numbers.emplace(ordinal, in.unsigned_number()).second) in.reject("ordinal twice");
  } while (in.another('}'));
}

/// The general way refuses longer texts.
bool has_long_text(const Attribute& attribute) {
  const auto is_long = [](const auto& entry) { return entry.second.size() > kTextBytesMax; };
  return (attribute.handle_id && attribute.handle_id->size() > kTextBytesMax) ||
         std::ranges::any_of(attribute.secondary, is_long) || std::ranges::any_of(attribute.alternate_owner, is_long);
}

}  // namespace

std::optional<BlockDraft> scan_block(std::string_view bytes) {
  if (bytes.size() > kRecordBytesMax || !is_ascii(bytes)) return std::nullopt;
  BlockDraft draft;
  core::Block& block = draft.block;
  CanonicalReader in(bytes);
  in.expect("{\"cidr\":");
  const auto cidr = net::parse_prefix(in.text());
  if (!cidr) return std::nullopt;
  block.cidr = *cidr;
  scan_owner(in, block);
  in.expect(",\"allocations\":");
  block.allocations = scan_list<std::optional<std::uint32_t>>(in, 64, [&](std::optional<std::uint32_t>& index) {
    if (!in.accept("null")) index = in.small_number(kOrdinalMax);
  });
  const std::size_t size = block.allocations.size();
  in.expect(",\"unallocated\":");
  draft.rest.unallocated_null = in.accept("null");
  if (!draft.rest.unallocated_null) {
    draft.unallocated = scan_list<std::uint32_t>(in, size, [&](std::uint32_t& o) { o = in.small_number(kOrdinalMax); });
  }
  in.expect(",\"attributes\":");
  draft.rest.attributes_null = in.accept("null");
  if (!draft.rest.attributes_null) {
    draft.attributes = scan_list<AttributeDraft>(in, size, [&](AttributeDraft& a) { scan_attribute(in, a.attribute); });
  }
  in.expect(",\"sequenceNumber\":");
  block.sequence_number = core::SequenceNumber(in.unsigned_number());
  in.expect(",\"sequenceNumberForAllocation\":");
  draft.rest.sequence_numbers_null = in.accept("null");
  if (!draft.rest.sequence_numbers_null) scan_sequence_numbers(in, block.sequence_number_for_allocation.own());
  in.expect(",\"deleted\":");
  block.deleted = in.boolean();
  in.expect("}");
  if (!in.finish()) return std::nullopt;
  if (std::ranges::any_of(draft.attributes, [](const auto& a) { return has_long_text(a.attribute); })) {
    return std::nullopt;
  }
  return draft;
}

}  // namespace croft::wire::calico
