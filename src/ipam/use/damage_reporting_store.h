#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/texts.h"
#include "store/forwarding_store.h"
#include "store/store.h"

namespace croft::engine {

inline constexpr std::size_t kToldOfAKindMax = 20;

/// A store that tells of every damaged record that is read from another one (what a watch shows is not looked at), once
/// a record as long as it lives, and of more than kToldOfAKindMax of a kind only that there are more. It gives what
/// that one gives. A program has it around its store, so that what is set aside somewhere is named. The store beneath
/// must outlive it; `tell` may be called from several threads, one at a time.
class DamageReportingStore final : public store::ForwardingStore {
 public:
  using Tell = std::function<void(const core::Key&, const Error&)>;

  DamageReportingStore(store::Store& beneath, Tell tell) : ForwardingStore(beneath), tell_(std::move(tell)) {}
  /// The same with the store in its hands.
  DamageReportingStore(std::unique_ptr<store::Store> beneath, Tell tell)
      : ForwardingStore(*beneath), owned_(std::move(beneath)), tell_(std::move(tell)) {}

  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    TRY(store::ReadAnswer answer, ForwardingStore::read(wanted, deadline));
    for (const auto& record : answer.records) {
      if (record) look(*record);
    }
    for (const auto& list : answer.lists) {
      for (const store::Record& record : list) look(record);
    }
    return answer;
  }
  [[nodiscard]] std::vector<Result<store::Revision>> commit_each(std::span<const store::Write> writes,
                                                                 const store::WriteToken& token,
                                                                 Deadline deadline) override {
    return beneath().commit_each(writes, token, deadline);
  }
  [[nodiscard]] Result<void> for_each(const store::ListRequest& request, const Until& until,
                                      const Take& take) override {
    return beneath().for_each(request, until, [&](store::Record& record) {
      look(record);
      return take(record);
    });
  }

 private:
  void look(const store::Record& record) {
    if (record.value) return;
    const std::lock_guard lock(mutex_);
    std::set<std::string>& told = told_[record.key.kind];
    if (told.size() > kToldOfAKindMax || !told.insert(record.key.name).second) return;
    if (told.size() <= kToldOfAKindMax) return tell_(record.key, record.value.error());
    tell_(record.key, make_error(record.value.error().code,
                                 "more than {} records of kind {} are damaged; the others are not named here, "
                                 "`croft check` names them",
                                 kToldOfAKindMax, core::name_of(record.key.kind)));
  }

  std::unique_ptr<store::Store> owned_;
  const Tell tell_;
  std::mutex mutex_;  ///< guards all below
  std::map<core::Kind, std::set<std::string>> told_;
};

}  // namespace croft::engine
