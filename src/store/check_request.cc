#include "store/check_request.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace croft::store {
namespace {

[[nodiscard]] Result<void> check_name(const Key& key) {
  if (key.name.empty() || key.name.size() > core::kKeyNameBytesMax) {
    return fail(invalid_argument(fmt::format("name of a {} record has {} bytes; 1 to {} are allowed",
                                             core::name_of(key.kind), key.name.size(), core::kKeyNameBytesMax)));
  }
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(key.name.begin(), key.name.end(), is_control)) {
    return fail(invalid_argument(fmt::format("name of a {} record has a control character", core::name_of(key.kind))));
  }
  return {};
}

[[nodiscard]] Result<void> check_write(const Write& write) {
  TRY_VOID(check_name(write.key));
  if (write.value && core::kind_of(*write.value) != write.key.kind) {
    return fail(invalid_argument(fmt::format("value of kind {} for the key {} of kind {}",
                                             core::name_of(core::kind_of(*write.value)), write.key.name,
                                             core::name_of(write.key.kind))));
  }
  if (write.only_check && write.value) {
    return fail(invalid_argument(fmt::format("a value for {}, which is only to be checked", write.key.name)));
  }
  return {};
}

}  // namespace

Result<void> check_writes(std::span<const Write> writes) {
  if (writes.empty() || writes.size() > kCommitWritesMax) {
    return fail(
        invalid_argument(fmt::format("commit of {} writes; 1 to {} are allowed", writes.size(), kCommitWritesMax)));
  }
  std::vector<const Key*> keys;
  keys.reserve(writes.size());
  for (const Write& write : writes) {
    TRY_VOID(check_write(write));
    keys.push_back(&write.key);
  }
  std::sort(keys.begin(), keys.end(), [](const Key* a, const Key* b) { return *a < *b; });
  const auto twice = std::adjacent_find(keys.begin(), keys.end(), [](const Key* a, const Key* b) { return *a == *b; });
  if (twice != keys.end()) {
    return fail(
        invalid_argument(fmt::format("commit writes the {} {} twice", core::name_of((*twice)->kind), (*twice)->name)));
  }
  return {};
}

Result<void> check_list(const ListRequest& request) {
  if (request.limit >= 1 && request.limit <= kListLimitMax) return {};
  return fail(
      invalid_argument(fmt::format("list of {} records a page; 1 to {} are allowed", request.limit, kListLimitMax)));
}

}  // namespace croft::store
