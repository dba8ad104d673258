#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "store/kube/object_list.h"
#include "store/kube/object_mapping.h"

namespace croft::store::kube {

/// The objects that are followed, and what is done with them. The functions are called in the informer's thread.
struct Followed {
  ListAsked asked;
  /// Set: what is there is known as of this resourceVersion. Nothing is listed, and the informer ends where changes
  /// were lost. Empty: it lists first, and anew after each gap.
  std::string from{};
  std::string_view remedy{};  ///< what to allow where the API does not permit the list
  /// A list begins: what was taken before is void.
  std::function<void()> begin{};
  /// An object of the list, or of a change; `is_gone`: as it was last. Error: it makes no sense, and would come again.
  std::function<Result<void>(const wire::kube::ApiObject& object, bool is_gone, Revision revision)> take;
  /// The API says that all changes up to it were taken: by a bookmark, or as one of it was.
  std::function<void(Revision revision)> passed{};
  /// The informer has ended, which only one with `from` does. too_old: changes were lost; permission_denied; corrupt:
  /// what came makes no sense.
  std::function<void(const Error& why)> ended{};
};

/// Follows objects of an API, by a list and then one watch after the other, in a thread of its own. Each watch begins
/// where the one before has ended, after a pause that grows while they end soon. A watch that says nothing for five
/// minutes, not even a bookmark, is opened anew.
class Informer {
 public:
  /// `api` and `clock` must outlive it.
  Informer(Api& api, const Clock& clock, Followed followed);
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  /// Lets it end; whoever destroys many says so to all first.
  void stop() { stop_.request_stop(); }
  /// Whether memory is what the API has, or had a moment ago: a watch is open, or a long one has just ended.
  [[nodiscard]] bool is_current() const;
  /// Why the API does not let it follow: a right is missing, or what comes is not understood. Empty: it does, or what
  /// is in the way passes. Stays until a watch has lasted.
  [[nodiscard]] std::string trouble() const;

 private:
  void run();
  /// A list, where it is needed, and one watch; why it has ended. `from` goes along. `lasted`: it was open for a while.
  [[nodiscard]] Error follow(std::string& from, bool& lasted);
  [[nodiscard]] Result<void> list(std::string& from);
  [[nodiscard]] Result<void> take(const wire::kube::ApiEvent& event, std::string& from);
  void note(bool is_current, std::optional<std::string> trouble = {});
  [[nodiscard]] bool is_stopping() const { return stop_.stop_requested(); }
  [[nodiscard]] Deadline in(std::chrono::nanoseconds span) const { return Deadline::after(clock_.now(), span); }

  Api& api_;
  const Clock& clock_;
  const Followed followed_;
  std::stop_source stop_;
  mutable std::mutex mutex_;
  bool is_current_ = false;  ///< guarded by mutex_, as below; see is_current()
  std::string trouble_;      ///< see trouble()
  std::thread thread_;       ///< the last: it uses all of the above
};

}  // namespace croft::store::kube
