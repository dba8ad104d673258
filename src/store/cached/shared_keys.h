#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "register/snapshot.h"

namespace croft::store {

/// Keys in their order, given out without copying. Changes wait until the list is asked for again. An earlier caller
/// has mostly let go of it by then, while a list that is still held has to be copied. Not synchronised.
class SharedKeys {
 public:
  /// Does nothing when it is there.
  void insert(core::Key key) { note({std::move(key), true}); }
  /// Does nothing when it is not there.
  void erase(core::Key key) { note({std::move(key), false}); }

  [[nodiscard]] core::KeyList list() {
    settle();
    return keys_;
  }

 private:
  struct Waiting {
    core::Key key;
    bool is_there = false;
  };
  static constexpr std::size_t kWaitingMax = 256;

  void note(Waiting change) {
    waiting_.push_back(std::move(change));
    if (waiting_.size() > kWaitingMax) settle();
  }

  void settle() {
    if (waiting_.empty()) return;
    {
      // Taking hold of it orders us after whoever let go last.
      const auto held = keys_;
      if (held.use_count() != 2) keys_ = std::make_shared<std::vector<core::Key>>(*keys_);
    }
    for (Waiting& change : waiting_) {
      const auto place = std::lower_bound(keys_->begin(), keys_->end(), change.key);
      const bool is_there = place != keys_->end() && *place == change.key;
      if (change.is_there && !is_there) keys_->insert(place, std::move(change.key));
      if (!change.is_there && is_there) keys_->erase(place);
    }
    waiting_.clear();
  }

  std::shared_ptr<std::vector<core::Key>> keys_ = std::make_shared<std::vector<core::Key>>();
  std::vector<Waiting> waiting_;  ///< in the order they came
};

}  // namespace croft::store
