#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/json/reader.h"
#include "base/result.h"
#include "register/owner.h"
#include "register/pool.h"
#include "store/kube/api.h"
#include "store/kube/informer.h"

namespace croft::store::kube {

/// The kind of object that has the annotations.
enum class Annotated : std::uint8_t { pod, name_space };

/// The wishes in the annotations of an object of the API. Error: invalid_argument, naming the object and the
/// annotation.
[[nodiscard]] Result<core::PodWishes> wishes_in(Annotated kind, wire::JsonRef object, const std::string& name);

/// The wishes in the annotations of a pod and its namespace, which are read at once. Nothing for a pod or namespace
/// that the API does not have: static pods run before it knows them. The pod is who has the name: a static pod's UID is
/// another one there. Errors: of wishes_in(), and of the API; permission_denied says what to allow.
[[nodiscard]] Result<core::AnnotatedWishes> ask_for_wishes(Api& api, const core::PodIdentity& pod, Deadline deadline);

/// The wishes in the annotations of the pods of one node, and of all namespaces: from memory, which follows the API
/// from the first question on. A hint of moments ago, as what a kubelet knows of a pod is. Safe to use from several
/// threads.
class WishFollower {
 public:
  /// A pod's author chooses how much its annotations say: a wish of more pools and addresses is not remembered.
  static constexpr std::size_t kNamesMax = 16;

  /// `clock` must outlive it.
  WishFollower(std::unique_ptr<Api> api, std::string node, const Clock& clock);
  ~WishFollower();
  WishFollower(const WishFollower&) = delete;
  WishFollower& operator=(const WishFollower&) = delete;

  /// The wishes of a pod that memory knows by name and UID, and of its namespace. Nothing: ask(). An Error is that of
  /// wishes_in().
  [[nodiscard]] std::optional<Result<core::AnnotatedWishes>> remembered(const core::PodIdentity& pod);
  /// As ask_for_wishes().
  [[nodiscard]] Result<core::AnnotatedWishes> ask(const core::PodIdentity& pod, Deadline deadline) {
    return ask_for_wishes(*api_, pod, deadline);
  }
  /// Why pods or namespaces can't be followed (Informer::trouble), so that every one is asked for by itself. Empty:
  /// they are, or nobody has asked for wishes yet.
  [[nodiscard]] std::string refusal();

 private:
  struct Known {
    std::string uid;
    Result<core::PodWishes> wishes;
  };
  struct Feed {
    std::map<std::string, Known> known;  ///< by name
    std::unique_ptr<Informer> informer;
  };
  void follow(Feed& feed, Annotated kind, ListAsked asked);
  /// `uid` empty: whoever has the name. Null: not known.
  [[nodiscard]] static const Known* find(const Feed& feed, const std::string& name, const std::string& uid);

  const std::unique_ptr<Api> api_;
  const std::string node_;
  const Clock& clock_;
  std::mutex mutex_;        ///< guards what is below
  Feed pods_, namespaces_;  ///< the last: their threads use all of the above
};

}  // namespace croft::store::kube
