#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/net/prefix.h"
#include "register/affinity.h"
#include "register/one_nodes_part.h"
#include "store/cached/shared_keys.h"
#include "store/store.h"

namespace croft::store {

/// One node's knowledge of the register without asking (or, core::Follower::stock, of its whole stock of cloud
/// addresses). It has pools, reservations, configuration, its own node record, its vacancies and claims, the contents
/// of its own blocks, and the keys of everybody else's claims.
///
/// It is a hint (docs/notes/reliability.md#i16). A record that it has may be gone, and from the keys it guesses what is
/// not there. These are a block without a claim, of the length that its pool's blocks have, and a handle that none of
/// the node's own blocks mentions. A decision that rests on it counts only when the conditions of its commit have held
/// (ipam/use/batch.h). Not synchronised.
class Cache {
 public:
  explicit Cache(core::AffinityOwner node, core::Follower follower = core::Follower::blocks);

  /// The first reading, which comes before that of `unknown()`.
  [[nodiscard]] core::Missing first_read() const;
  /// Takes in what a read found; `wanted` is what was asked. Newer knowledge of a record is not replaced by older.
  void learn_all(const core::Missing& wanted, const ReadAnswer& answer);
  /// The same for reads that happened to pass by: only what is unknown is taken from them.
  void learn(const ReadAnswer& answer);
  /// Own blocks whose content is not known, and handles they mention: at most `most` of them.
  [[nodiscard]] core::Missing unknown(std::size_t most) const;

  /// The scope that must be watched, whatever blocks the node has.
  [[nodiscard]] WatchScope scope() const;
  /// The blocks whose records must be followed as well, with the revision of the claim (0: of the first read): changes
  /// from there on matter. own_blocks_generation() changes with every block that comes or goes.
  [[nodiscard]] const std::map<net::Prefix, Revision>& own_blocks() const { return own_; }
  [[nodiscard]] std::size_t own_blocks_generation() const { return generation_; }

  /// The changes that the watch saw. True when they said something new, which may have left gaps.
  bool apply(const std::vector<Change>& changes);
  /// A commit of this process was done.
  void committed(std::span<const Write> writes, const WriteToken& token, Revision revision);
  /// A commit of this process was not done, or nobody knows: what it rested on is to be read anew.
  void doubt(std::span<const Write> writes);
  /// Whether the watch will see a change of this key.
  [[nodiscard]] bool is_watched(const Key& key) const;

  /// The known part of that, each kind in its order; the others are noted in `rest`.
  [[nodiscard]] ReadAnswer answer(const core::Missing& wanted, core::Missing& rest);
  /// One record: absent (the inner optional), or nothing when it is not known.
  [[nodiscard]] std::optional<std::optional<Record>> record(const Key& key) const;

  [[nodiscard]] std::size_t own_block_count() const { return own_.size(); }
  /// The number of records held with their content.
  [[nodiscard]] std::size_t record_count() const { return records_.size() + ahead_.size(); }
  [[nodiscard]] std::size_t affinity_count() const { return affinity_names_.size(); }

 private:
  [[nodiscard]] bool is_own_name(const std::string& name) const { return name.starts_with(own_names_); }
  [[nodiscard]] bool holds_all_of(const core::Listing& listing) const;
  /// Null, or nothing, when they are not known.
  [[nodiscard]] core::KeyList keys(const core::Listing& listing);
  [[nodiscard]] std::optional<std::vector<Key>> names(const core::Listing& listing) const;
  [[nodiscard]] std::optional<Record> find(const Key& key) const;
  [[nodiscard]] std::optional<std::vector<Record>> list(const core::Listing& listing) const;
  [[nodiscard]] bool is_older_than_known(const Key& key, Revision revision) const;
  [[nodiscard]] bool is_newer_than_known(const Record& record) const;
  [[nodiscard]] bool is_unreadable_block(const Key& key) const;
  [[nodiscard]] bool tells_anew(const Record& known, const Record& seen) const;
  [[nodiscard]] bool is_there(const Key& key) const;
  [[nodiscard]] bool wants(const Key& key) const;
  /// Whether a handle that is known counts addresses in the block.
  [[nodiscard]] bool is_named_by_a_handle(const net::Prefix& block) const;
  /// Whether a claim has a condition on the block and what is beside it (core::may_be_block_of).
  [[nodiscard]] bool is_of_pools_length(const net::Prefix& block) const;

  bool apply_one(const Change& change);
  void put(const Key& key, std::optional<Record> record);
  void put_affinity(const Key& key, std::optional<Record> record);
  void drop_affinity(const Key& key);
  void put_block(const Key& key, std::optional<Record> record);
  void keep(const Key& key, std::optional<Record> record);

  core::AffinityOwner node_;
  core::Follower follower_;
  std::string own_names_;  ///< what the names of the node's own rows begin with

  std::map<Key, Record> records_;                     ///< everything that is held with its content
  std::set<std::string> affinity_names_;              ///< of everybody
  std::map<std::string, std::size_t> claimed_;        ///< claims by the name of the block
  std::map<net::Family, SharedKeys> claimed_blocks_;  ///< the keys of claimed_, as they are asked for
  std::map<net::Prefix, Revision> own_;               ///< blocks the node has a claim on, and since when
  std::map<std::string, std::size_t> mentions_;       ///< in how many own blocks a handle is mentioned
  std::map<std::string, Record> ahead_;               ///< handles that this process wrote and no own block mentions yet
  std::set<std::string> doubted_;                     ///< handles that are not as was thought
  std::map<Key, Revision> deleted_;                   ///< by this process, which the watch has not told yet
  std::map<Key, Revision> touched_;                   ///< own blocks whose content is older than this
  std::size_t blocks_held_ = 0;                       ///< of the records, those of blocks
  std::size_t handles_held_ = 0;                      ///< and of handles
  std::size_t generation_ = 0;
};

}  // namespace croft::store
