#pragma once

// The answers of a Kubernetes API server, in JSON: statuses, single objects, pages of lists, events of watches
// (docs/notes/kubernetes-client.md). Members of an object beyond its metadata are for others to read.
//
// Errors of reading: corrupt, naming what was read and the member. Member names are exact, unknown ones are passed
// over.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json/reader.h"
#include "base/result.h"

namespace croft::wire::kube {

/// The size of one answer: 500 blocks of 20 KB are 10 MB, and no object has more than 3 MiB. A list that has more is
/// asked for in smaller pages.
inline constexpr std::size_t kApiAnswerBytesMax = std::size_t{16} << 20;

/// Why the server did not do what it was asked for.
struct ApiStatus {
  int code = 0;         ///< of HTTP
  std::string reason;   ///< "NotFound", "AlreadyExists", "Conflict", "Expired", "Invalid", …; empty: not said
  std::string message;  ///< for a person, as the server has it: not fit for a terminal
  std::string name;     ///< empty also where the server does not know the kind: a CRD is missing
  /// How long to wait before asking again, as the body says it; the header Retry-After says it too.
  std::optional<std::chrono::seconds> retry_after;
  friend bool operator==(const ApiStatus&, const ApiStatus&) = default;
};

/// The text of a member; empty where there is none, or it is no string.
[[nodiscard]] std::string_view text_in(std::optional<JsonRef> object, std::string_view name);
/// Whether a member is the boolean true.
[[nodiscard]] bool is_true_in(std::optional<JsonRef> object, std::string_view name);

/// Nothing when the text is no Status: what stands between us and the API answers in its own words.
[[nodiscard]] std::optional<ApiStatus> decode_status(std::string_view json);

/// The members of an object's `metadata` that every reader needs.
struct ApiMeta {
  std::string name;
  std::string name_space;        ///< empty: the object is in none
  std::string uid;               ///< empty only where the server sends none: in bookmarks
  std::string resource_version;  ///< opaque; never empty
  /// Set: it is being deleted, finalizers still hold it. The last time there is where it says one that can't be held.
  std::optional<WallTime> deletion_timestamp;
  friend bool operator==(const ApiMeta&, const ApiMeta&) = default;
};

/// An object and the text it is part of. Movable: `value` stays good.
struct ApiObject {
  std::unique_ptr<const JsonDocument> document;
  JsonRef value;  ///< into `document`
  ApiMeta meta;
};

/// An object. Error also: one without a name or a resourceVersion.
[[nodiscard]] Result<ApiObject> decode_object(std::string_view json);

/// A member that is kept, and which of its own are; without `parts` all of it. Lists are looked into.
struct Kept {
  std::string_view name;
  std::span<const Kept> parts{};
};

/// The identity under which a list was asked for. It says itself what it is of (the items, in lists of Kubernetes' own
/// kinds, don't), and from a list of something else it would follow that nothing exists.
struct ApiListOf {
  std::string api_version;       ///< "v1", "crd.projectcalico.org/v1"
  std::string kind;              ///< of the items: "Pod"; the list's own is "PodList"
  bool may_be_metadata = false;  ///< PartialObjectMetadataList was asked for, where the server has it
  std::span<const Kept> kept{};  ///< of each item, with what everybody needs of its metadata; empty: all
};

/// A part of a list, its objects still to be read, one at a time: no more than one is in memory as values.
struct ApiListPage {
  /// The version of the whole list: a watch goes on from here.
  std::string resource_version;
  std::string continue_token;           ///< asks for the next page; empty: this is the last
  std::vector<std::string_view> items;  ///< the objects' texts, in the text that was given
};

/// Error also: a list of another kind or version; it is cut off.
[[nodiscard]] Result<ApiListPage> decode_list(std::string_view json, const ApiListOf& of);
/// An object of such a page. Error also: it has no name or no resourceVersion.
[[nodiscard]] Result<ApiObject> decode_item(std::string_view item, const ApiListOf& of);

/// An event of a watch.
struct ApiEvent {
  enum class Type : std::uint8_t {
    added,     ///< `object` is new, or there when the watch began
    modified,  ///< `object` is another one now
    deleted,   ///< `object` is as it was last; its resourceVersion is that of the deletion
    bookmark,  ///< nothing has happened up to `object.meta.resource_version`, which is all that is set of it
    error,     ///< the watch is over; see `status`
  } type = Type::bookmark;
  std::optional<ApiObject> object;  ///< unless `error`
  std::optional<ApiStatus> status;  ///< `error`
  /// `error`: changes are lost; everything has to be listed again. 410, Gone or Expired.
  [[nodiscard]] bool is_too_old() const { return status && (status->code == 410 || status->reason == "Expired"); }
};

/// One line of a watch. Error also: an unknown type.
[[nodiscard]] Result<ApiEvent> decode_event(std::string_view line);

/// Cuts the body of a watch into its lines, however it comes.
class WatchLines {
 public:
  /// No line is longer than `line_bytes_max`.
  explicit WatchLines(std::size_t line_bytes_max = kApiAnswerBytesMax) : line_bytes_max_(line_bytes_max) {}

  void add(std::string_view bytes);
  /// The next whole line, without its end; empty lines are left out. Nothing when more must come first. Good until the
  /// next add(). Error: corrupt when a line is too long; that stays so.
  [[nodiscard]] Result<std::optional<std::string_view>> next();
  /// Whether something is left that is no whole line: at the end of a watch it was cut off.
  [[nodiscard]] bool has_rest() const { return taken_ < bytes_.size(); }

 private:
  std::size_t line_bytes_max_;
  std::string bytes_;
  std::size_t taken_ = 0;   ///< of these, given out
  std::size_t looked_ = 0;  ///< up to here there is no further end of a line
};

// Goes through a JSON text by its brackets and quotes, without reading it. So a list of an API server is cut into its
// objects, and the members that nobody reads are left out. A text that is no JSON may pass for it; parse_json() of the
// pieces tells.

/// How long the value at the beginning of a text is; npos where it has no end.
[[nodiscard]] std::size_t length_of_value(std::string_view text);

/// Gets a member of an object by its name as it is written, or an element of a list, which has no name. `text` begins
/// with the value and goes on behind it. Returns how long the value is; npos: it has no end.
using TakeSlice = std::function<std::size_t(std::string_view name, std::string_view text)>;
/// Takes what is in the object or list at the beginning of a text. Returns how long that is; npos where it has no end
/// or is neither.
[[nodiscard]] std::size_t each_slice(std::string_view text, const TakeSlice& take);

/// The text with nothing of its members but those. A text that is no JSON comes back as it is.
[[nodiscard]] std::string with_only(std::string_view text, std::span<const Kept> kept);

// The requests: paths with their queries, and bodies that are not objects.

/// A kind of object as URLs name it.
struct ApiResource {
  std::string_view group;     ///< "crd.projectcalico.org"; empty: the core group
  std::string_view version;   ///< "v1"
  std::string_view resource;  ///< the plural, lower case: "ipamblocks"

  [[nodiscard]] std::string api_version() const;  ///< "crd.projectcalico.org/v1", "v1"
};

/// Whether a text can be an object's name in a path: not empty, not `.` or `..`, without `/` and `%`, at most 253
/// bytes. Most kinds take less; that is theirs to refuse.
[[nodiscard]] bool is_path_segment(std::string_view name);

/// The path of all objects of a kind, for POST and lists; `name_space` empty: of none, or of all namespaces.
/// Error: invalid_argument for a namespace that can be none.
[[nodiscard]] Result<std::string> collection_path(const ApiResource& resource, std::string_view name_space = {});

/// The path of one object, for GET, PUT and DELETE. Error: invalid_argument for a name that can be none.
[[nodiscard]] Result<std::string> object_path(const ApiResource& resource, std::string_view name_space,
                                              std::string_view name);

/// Which objects, of a list or a watch. Empty: all.
struct ApiSelection {
  std::string label_selector;
  std::string field_selector;
};

struct ApiListQuery {
  ApiSelection select;
  std::int64_t limit = 0;      ///< objects a page; 0: all at once
  std::string continue_token;  ///< of the page before; then `resource_version` is not sent: the token has it
  /// How new the answer is: empty: as new as can be (read from etcd's quorum); "0": whatever the server has.
  std::string resource_version;
};
/// `collection` with the query of a list.
[[nodiscard]] std::string list_path(std::string_view collection, const ApiListQuery& query);

struct ApiWatchQuery {
  ApiSelection select;
  /// Changes after this one are told. Empty: what is there first, as `added`, and the changes of then on.
  std::string resource_version;
};
/// `collection` with the query of a watch, which the server ends when it likes, after 30 to 60 minutes; bookmarks are
/// always asked for.
[[nodiscard]] std::string watch_path(std::string_view collection, const ApiWatchQuery& query);

/// The body of a DELETE: only if the object is still that. Empty: any.
struct ApiPreconditions {
  std::string uid;
  std::string resource_version;
};
[[nodiscard]] std::string encode_delete_options(const ApiPreconditions& only_if);

}  // namespace croft::wire::kube
