#pragma once

#include <atomic>
#include <functional>
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
#include "store/kube/object_list.h"
#include "store/kube/refusals.h"

namespace croft::store::kube {

/// Records as objects of an API, one at a time: what the parts of the store share. Safe to use from several threads.
class Objects {
 public:
  /// Both must outlive it. `finishes_deletions`: reads delete what they find marked as deleted.
  Objects(Api& api, std::vector<std::unique_ptr<Form>> forms, const Clock& clock, bool finishes_deletions);

  /// Error: invalid_argument for a kind that this store has not.
  [[nodiscard]] Result<const Form*> form_of(Kind kind) const;
  /// Whether there are records of a kind at all. What is beside a block is in the block's own object here, and goes
  /// with it; hints are not kept (Capabilities::lacks); without a form for Croft's own kinds none of these are.
  [[nodiscard]] bool keeps(Kind kind) const;
  [[nodiscard]] Api& api() const { return api_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }

  /// An object as it is; nothing where there is none.
  struct Found {
    Stored stored;
    wire::kube::ApiObject object;
  };
  [[nodiscard]] Result<std::optional<Found>> look(const Key& key, Deadline deadline);
  /// The record; nothing where there is none. What is only marked as deleted is none.
  [[nodiscard]] Result<std::optional<Record>> get(const Key& key, Deadline deadline);
  /// The keys of all blocks of a listing but those of one length, from what the server has in memory.
  struct OtherLengths {
    core::Listing listing;
    int length = 0;
    friend auto operator<=>(const OtherLengths&, const OtherLengths&) = default;
  };
  /// What is asked for together.
  struct Wanted {
    std::vector<Key> records;
    std::set<core::Listing> lists;  ///< all records
    std::set<core::Listing> keys;   ///< all keys
    std::set<OtherLengths> other_lengths;
    /// Lists of one node's claims may be as old as what the server has in memory.
    bool claims_may_lag = false;
    std::optional<Request> beside{};  ///< something else
  };
  /// In the same order; lists ascending by name.
  struct Together {
    std::vector<std::optional<Record>> records;
    std::map<core::Listing, std::vector<Record>> lists;
    std::map<core::Listing, std::vector<Key>> keys;
    std::map<OtherLengths, std::vector<Key>> other_lengths;
    std::optional<Answer> beside{};
  };
  [[nodiscard]] Result<Together> read(const Wanted& wanted, Deadline deadline);

  /// Store::for_each, by the API's pages.
  [[nodiscard]] Result<void> for_each(const core::Listing& listing, std::size_t page_max,
                                      const std::function<Deadline()>& until,
                                      const std::function<Result<void>(Record&)>& take);

  // Single writes. Errors, beside those of every call: conflict, naming the key, when what is there is another
  // object than the condition says; unknown_outcome. That it is another is believed of no answer alone: an intermediary
  // may send a request twice, and the second is refused for what the first did. What is there is read once more, and is
  // done if it has this write's token (docs/reference/reliability.md#unknown-outcomes). With a conflict the write may
  // still be in it, under what another has written since; and of an object that is gone nobody can tell who deleted it.

  [[nodiscard]] Result<Revision> create(const Key& key, const Value& value, const WriteToken& token, Deadline deadline);
  [[nodiscard]] Result<Revision> update(const Key& key, const Value& value, Revision revision, const WriteToken& token,
                                        Deadline deadline);
  /// At once when the object is known not to outlive it, else by a mark first, where the kind has one.
  [[nodiscard]] Result<Revision> remove(const Key& key, Revision revision, const WriteToken& token, Deadline deadline);
  /// What a write asks first, where that most likely is all; nothing for one that has to look before. For who sends
  /// several writes together. Error: as of the write.
  [[nodiscard]] Result<std::optional<Request>> first_request(const Write& write, const WriteToken& token) const;
  /// What the answer to that says of the write; nothing when the write is to be made as if it had not been asked.
  [[nodiscard]] std::optional<Result<Revision>> settled_by(const Write& write, const WriteToken& token,
                                                           const Answer& answer, Deadline deadline);
  /// The second half of the deletion of an object with a mark; who writes in its place, or
  /// opened the store to write, helps. What fails is left to the next.
  void finish_deletion(const Key& key, const Basis& basis, Deadline deadline);

  /// The position of the storage. Asks the API.
  [[nodiscard]] Result<Revision> position(Deadline deadline);

  /// The error of an answer that is none of what was hoped for.
  [[nodiscard]] Error error_of(const Answer& answer, Kind kind, std::string_view name) const;

 private:
  [[nodiscard]] Result<std::string> path_of(const Form& form, const Key& key) const;
  /// What is read of a handle that can have no object, because of its name: that (core::Damaged, invalid_argument).
  [[nodiscard]] static std::optional<Record> cannot_be(const Form& form, const Key& key);
  [[nodiscard]] Result<std::string> path_of(const Form& form, Kind kind) const;
  [[nodiscard]] Result<std::optional<Found>> found_in(const Form& form, const Key& key, const Answer& answer);
  /// One selection of a listing.
  struct Part {
    const core::Listing* listing = nullptr;
    const Form* form = nullptr;
    ListAsked asked;
    const OtherLengths* other_lengths = nullptr;  ///< that it is of
  };
  [[nodiscard]] Result<std::vector<Part>> parts_of(const core::Listing& listing, bool only_names,
                                                   bool claims_may_lag) const;
  [[nodiscard]] Result<std::vector<Part>> parts_of(const OtherLengths& others) const;
  /// Reads the pages of a part; `error_of` is its own.
  [[nodiscard]] Result<void> read_part(const Part& part, ListUse use, std::optional<Answer> first);
  [[nodiscard]] Result<void> take_records(const Part& part, std::optional<Answer> first, Deadline deadline,
                                          std::vector<Record>& records);
  /// Keys by the names of objects; by the objects themselves where those do not tell.
  [[nodiscard]] Result<std::vector<Key>> take_keys(const Part& part, Answer first, Deadline deadline);
  static void put_in_order(std::vector<Record>& records);
  /// Error also: refused_by_configuration, when what the API has kept is not what was sent.
  [[nodiscard]] Result<Revision> written(const Form& form, const Key& key, const Value* value, const Answer& answer);
  [[nodiscard]] Result<Request> update_of(const Key& key, const Value& value, Revision revision,
                                          const WriteToken& token) const;
  [[nodiscard]] Result<Revision> updated(const Key& key, const Value& value, const WriteToken& token,
                                         const Answer& answer, Deadline deadline);
  /// What is there after an answer that it is another. Error: unknown_outcome, when that can't be read.
  [[nodiscard]] Result<std::optional<Found>> look_whose(const Key& key, Deadline deadline);
  /// Whether the write of this token made it what it is. No write is known by a token of zeros.
  [[nodiscard]] static bool is_of(const Found& found, const Value* value, const WriteToken& token);
  [[nodiscard]] Result<Revision> done_as(const Found& found);
  /// Nothing where the mark comes first.
  [[nodiscard]] Result<std::optional<Request>> removal_of(const Key& key, Revision revision) const;
  [[nodiscard]] Result<Revision> removed(const Key& key, Revision revision, const Answer& answer) const;
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
  const bool keeps_own_;
  const bool finishes_deletions_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  /// Of objects seen last. A write says whose it is by the UID, so that it can't meet one made anew. Guarded by mutex_.
  std::unordered_map<std::string, Seen> seen_;
};

/// The error for a key whose condition failed.
[[nodiscard]] Error conflict_on(const Key& key);

}  // namespace croft::store::kube
