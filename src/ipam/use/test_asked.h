#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "store/forwarding_store.h"

namespace croft::engine {

/// Remembers what a store was asked, so that tests can hold use cases to their number of reads.
class Asked final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  [[nodiscard]] std::size_t requests() const { return reads_.size() + lists_.size(); }
  /// How often records of a kind, or their keys, were listed.
  [[nodiscard]] std::size_t lists_of(core::Kind kind) const {
    const auto is_of_kind = [&](const auto& one) { return one.kind == kind; };
    const auto has = [&](const core::Missing& read) {
      return std::ranges::any_of(read.lists, is_of_kind) || std::ranges::any_of(read.keys, is_of_kind);
    };
    return static_cast<std::size_t>(std::ranges::count_if(reads_, has) + std::ranges::count_if(lists_, is_of_kind));
  }
  [[nodiscard]] std::size_t lists_of(const core::Listing& listing) const {
    return static_cast<std::size_t>(std::ranges::count_if(reads_, [&](const core::Missing& read) {
      return read.lists.contains(listing) || read.keys.contains(listing);
    }));
  }
  [[nodiscard]] std::size_t reads_of(const core::Key& key) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(reads_, [&](const core::Missing& read) { return read.records.contains(key); }));
  }
  void forget() {
    reads_.clear();
    lists_.clear();
  }

  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    reads_.push_back(wanted);
    return ForwardingStore::read(wanted, deadline);
  }
  [[nodiscard]] Result<store::Page> list(const store::ListRequest& request, Deadline deadline) override {
    lists_.push_back(request);
    return ForwardingStore::list(request, deadline);
  }

 private:
  std::vector<core::Missing> reads_;
  std::vector<store::ListRequest> lists_;
};

}  // namespace croft::engine
