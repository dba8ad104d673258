#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "store/forwarding_store.h"
#include "store/store.h"

namespace croft::engine {

/// A store that tells of every damaged record that is read from another one (what a watch shows is not looked at), once
/// a record as long as it lives, and of more than kToldOfAKindMax of a kind only that there are more. It gives what
/// that one gives. A program has it around its store, so that what is set aside somewhere is named. The store beneath
/// must outlive it; `tell` may be called from several threads, one at a time.
class DamageTelling final : public store::ForwardingStore {
 public:
  using Tell = std::function<void(const core::Key&, const Error&)>;

  DamageTelling(store::Store& beneath, Tell tell);
  /// The same with the store in its hands.
  DamageTelling(std::unique_ptr<store::Store> beneath, Tell tell);
  ~DamageTelling() override;

  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override;
  [[nodiscard]] std::vector<Result<store::Revision>> commit_each(std::span<const store::Write> writes,
                                                                 const store::WriteToken& token,
                                                                 Deadline deadline) override {
    return beneath().commit_each(writes, token, deadline);
  }
  [[nodiscard]] Result<void> for_each(const store::ListRequest& request, const Until& until, const Take& take) override;

 private:
  void look(const store::Record& record);

  std::unique_ptr<store::Store> owned_;
  const Tell tell_;
  std::mutex mutex_;  ///< guards all below
  std::map<core::Kind, std::set<std::string>> told_;
};

inline constexpr std::size_t kToldOfAKindMax = 20;

}  // namespace croft::engine
