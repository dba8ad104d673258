#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/kube/api.h"
#include "store/kube/form.h"
#include "store/kube/object_list.h"

namespace croft::store::kube {

/// Records as objects of an API, one at a time: what the parts of the store share. Safe to use from several threads.
class Objects {
 public:
  /// Both must outlive it.
  Objects(Api& api, std::vector<std::unique_ptr<Form>> forms, const Clock& clock);

  /// Error: invalid_argument for a kind that this store has not.
  [[nodiscard]] Result<const Form*> form_of(Kind kind) const;
  /// Whether there are records of a kind at all. Data beside a block is in the block's own object here, and goes with
  /// it. Hints are not kept (Capabilities::lacks), nor any of Croft's own kinds without a form for them.
  [[nodiscard]] bool keeps(Kind kind) const;
  [[nodiscard]] Api& api() const { return api_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }

  /// The record; nothing where there is none. An object that is only marked as deleted is none.
  [[nodiscard]] Result<std::optional<Record>> get(const Key& key, Deadline deadline);
  /// The keys of all blocks of a listing but those of one length, from what the server has in memory.
  struct OtherLengths {
    core::Listing listing;
    int length = 0;
    friend auto operator<=>(const OtherLengths&, const OtherLengths&) = default;
  };
  /// The objects that are asked for together.
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

  // Single writes, whose condition is a revision, or for a put that there is none. Errors, beside those of every call:
  // conflict, naming the key, when the API says that what is there is another object than the condition says;
  // unknown_outcome. An intermediary may have sent a request twice: with a conflict the write may be in what is there
  // (ipam/use/ordered_commit.h).

  [[nodiscard]] Result<Revision> write(const Write& write, const WriteToken& token, Deadline deadline);
  /// The request that a write makes first, where that most likely is all; nothing for other conditions and kinds that
  /// are not kept. For sending several writes together. Error: as of the write.
  [[nodiscard]] Result<std::optional<Request>> first_request(const Write& write, const WriteToken& token) const;
  /// The outcome that the answer means for the write; nothing when the write is to be made as if it had not been asked.
  [[nodiscard]] std::optional<Result<Revision>> settled_by(const Write& write, const Answer& answer);

  /// The position of the storage. Asks the API.
  [[nodiscard]] Result<Revision> position(Deadline deadline);

 private:
  /// The error of an answer that is none of what was hoped for.
  [[nodiscard]] Error error_of(const Answer& answer, Kind kind, std::string_view name) const;
  /// An object as it is; nothing where there is none.
  [[nodiscard]] Result<std::optional<Stored>> look(const Key& key, Deadline deadline);
  [[nodiscard]] Result<std::optional<Stored>> found_in(const Form& form, const Key& key, const Answer& answer);
  /// One selection of a listing, and where what it finds goes.
  struct Part {
    const core::Listing* listing = nullptr;
    const Form* form = nullptr;
    ListAsked asked;
    std::vector<Record>* records = nullptr;
    std::vector<Key>* keys = nullptr;
  };
  [[nodiscard]] Result<std::vector<Part>> parts_of(const core::Listing& listing, bool claims_may_lag,
                                                   bool only_names) const;
  /// Reads the pages of a part; `take` gets each record, or its key alone. `begin` as ListUse's.
  [[nodiscard]] Result<void> read_part(const Part& part, std::optional<Answer> first,
                                       const std::function<void()>& begin, const std::function<Deadline()>& until,
                                       const std::function<Result<void>(Record&)>& take);
  /// Error also: refused_by_configuration, when what the API has kept is not what was sent.
  [[nodiscard]] Result<Revision> written(const Form& form, const Write& put, const Answer& answer);
  /// Deletes an object that Calico has marked, to make another in its place. A failure is left to the next caller.
  void finish_deletion(const Key& key, const Basis& basis, Deadline deadline);
  void remember(const Key& key, const wire::kube::ApiObject& object);
  /// Empty: not known.
  [[nodiscard]] std::string uid_of(const Key& key) const;

  Api& api_;
  const std::vector<std::unique_ptr<Form>> forms_;
  const bool keeps_own_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  /// The UIDs of the objects seen last. A write says whose it is by the UID, so that it can't meet one made anew.
  /// Guarded by mutex_.
  std::map<Key, std::string> uids_;
};

/// The error for a key whose condition failed.
[[nodiscard]] Error conflict_on(const Key& key);

}  // namespace croft::store::kube
