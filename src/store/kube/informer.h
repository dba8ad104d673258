#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "store/kube/api.h"
#include "store/kube/form.h"

namespace croft::store::kube {

/// What is followed.
struct Followed {
  std::string collection;  ///< wire::kube::collection_path
  wire::kube::ApiListOf of;
  wire::kube::ApiSelection select{};
  std::string name{};  ///< this object alone; empty: all
  /// The server ends each watch after it, and a connection that is dead and does not say so ends with it; 0: when the
  /// server likes, after some 30 to 60 minutes.
  std::chrono::minutes watch_time{0};
};

/// Follows changes of an API's objects, one watch after the other, in a thread of its own. Each begins where the one
/// before has ended, after a pause that grows while they end soon.
class Informer {
 public:
  enum class Next {
    again,  ///< from where it was
    anew,   ///< from what User::begin() says
    end,
  };
  /// Called in the informer's thread.
  class User {
   public:
    virtual ~User() = default;
    /// The resourceVersion of what is known by now. Nothing: that can't be said yet; it is asked again.
    [[nodiscard]] virtual std::optional<std::string> begin() = 0;
    /// A watch is open.
    virtual void opened() {}
    /// A change of what is followed, or only how far all has been told (bookmark). Error: it makes no sense.
    [[nodiscard]] virtual Result<void> take(const wire::kube::ApiEvent& event, Revision revision) = 0;
    /// A watch has ended, or there was none. too_old: changes were lost; permission_denied; corrupt: what came makes no
    /// sense, and would come again; else it may be opened again. `lasted`: it was open for a while.
    [[nodiscard]] virtual Next ended(const Error& why, bool lasted) = 0;
  };

  /// All must outlive it; `user` is whole by now.
  Informer(Api& api, const Clock& clock, Followed followed, User& user);
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  /// Lets it end; whoever destroys many says so to all first.
  void stop();
  [[nodiscard]] bool is_stopping() const;

 private:
  void run();
  /// One watch; why it has ended. `from` goes along.
  [[nodiscard]] Error follow(std::string& from);
  [[nodiscard]] Result<void> take(const wire::kube::ApiEvent& event, std::string& from);
  /// False: it is to end.
  [[nodiscard]] bool sleeps(std::chrono::nanoseconds span);
  [[nodiscard]] Deadline in(std::chrono::nanoseconds span) const { return Deadline::after(clock_.now(), span); }

  Api& api_;
  const Clock& clock_;
  const Followed followed_;
  User& user_;
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;  ///< guarded by mutex_
  std::thread thread_;     ///< the last: it uses all of the above
};

}  // namespace croft::store::kube
