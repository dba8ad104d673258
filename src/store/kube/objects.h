#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/kube/api.h"
#include "store/kube/form.h"

namespace croft::store::kube {

/// Records as objects of an API, one at a time: what the parts of the store share. Safe to use from several threads.
class Objects {
 public:
  /// Both must outlive it.
  Objects(Api& api, std::vector<std::unique_ptr<Form>> forms, const Clock& clock);

  /// Error: invalid_argument for a kind that this store has not.
  [[nodiscard]] Result<const Form*> form_of(Kind kind) const;
  [[nodiscard]] Api& api() const { return api_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }

  /// An object as it is; nothing where there is none.
  struct Found {
    Stored stored;
    wire::kube::ApiObject object;
  };
  [[nodiscard]] Result<std::optional<Found>> look(const Key& key, Deadline deadline);
  /// The record; nothing where there is none. What is only marked as deleted is deleted on the way.
  [[nodiscard]] Result<std::optional<Record>> get(const Key& key, Deadline deadline);
  /// Records in the order of `keys`, and all records of listings, ascending by name. All is asked for together.
  struct Together {
    std::vector<std::optional<Record>> records;
    std::map<core::Listing, std::vector<Record>> lists;
  };
  [[nodiscard]] Result<Together> read(std::span<const Key> keys, const std::set<core::Listing>& listings,
                                      Deadline deadline);

  // Single writes. Errors, beside those of every call: conflict, naming the key, when what is there is another object
  // than the condition says; unknown_outcome.

  [[nodiscard]] Result<Revision> create(const Key& key, const Value& value, const WriteToken& token, Deadline deadline);
  [[nodiscard]] Result<Revision> update(const Key& key, const Value& value, Revision revision, const WriteToken& token,
                                        Deadline deadline);
  /// At once when the object is known not to outlive it, else by a mark first, where the kind has one.
  [[nodiscard]] Result<Revision> remove(const Key& key, Revision revision, const WriteToken& token, Deadline deadline);
  /// The second half of the deletion of an object with a mark; whoever sees one helps. What fails is left to the next.
  void finish_deletion(const Key& key, const Basis& basis, Deadline deadline);

  /// The error of an answer that is none of what was hoped for.
  [[nodiscard]] Error error_of(const Answer& answer, Kind kind, std::string_view name) const;

 private:
  [[nodiscard]] Result<std::string> path_of(const Form& form, const Key& key) const;
  [[nodiscard]] Result<std::string> path_of(const Form& form, Kind kind) const;
  [[nodiscard]] Result<std::optional<Found>> found_in(const Form& form, const Key& key, const Answer& answer);
  /// One selection of a listing.
  struct Part {
    const core::Listing* listing = nullptr;
    const Form* form = nullptr;
    std::string path;
    wire::kube::ApiListQuery query;
  };
  [[nodiscard]] Result<void> take_pages(Part& part, Answer answer, Deadline deadline, std::vector<Record>& records);
  static void put_in_order(std::vector<Record>& records);
  /// Error also: refused_by_configuration, when the API has kept less of a setting than was sent.
  [[nodiscard]] Result<Revision> written(const Form& form, const Key& key, const Value* value, const Answer& answer);
  /// What is known of an object as of a version.
  struct Seen {
    std::string uid;
    Revision revision;
    bool has_finalizers = true;
  };
  void remember(const Key& key, const wire::kube::ApiObject& object);
  [[nodiscard]] Seen seen(const Key& key) const;

  Api& api_;
  const std::vector<std::unique_ptr<Form>> forms_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  /// Of objects seen last. A write says whose it is by the UID, so that it can't meet one made anew. Guarded by mutex_.
  std::unordered_map<std::string, Seen> seen_;
};

/// Whether there are records of a kind at all. What is beside a block is in the block's own object here, and goes with
/// it.
[[nodiscard]] inline bool has_records(Kind kind) { return kind != Kind::block_beside; }

/// Whether an answer says that there is no such object. Not when the whole resource is unknown: its CRD is missing.
[[nodiscard]] bool is_absent(const Answer& answer);

/// The error for a key whose condition failed.
[[nodiscard]] Error conflict_on(const Key& key);

}  // namespace croft::store::kube
