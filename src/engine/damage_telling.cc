#include "engine/damage_telling.h"

#include <string>
#include <utility>

#include <fmt/format.h>

namespace croft::engine {

class TellingWatch final : public store::Watch {
 public:
  TellingWatch(DamageTelling& store, std::unique_ptr<store::Watch> beneath)
      : store_(store), beneath_(std::move(beneath)) {}

  [[nodiscard]] Result<std::vector<store::Change>> next(Deadline deadline) override {
    TRY(auto changes, beneath_->next(deadline));
    for (const store::Change& change : changes) {
      if (change.record) store_.look(*change.record);
    }
    return changes;
  }
  void follow(const core::Key& key, store::Revision after) override { beneath_->follow(key, after); }
  void unfollow(const core::Key& key) override { beneath_->unfollow(key); }

 private:
  DamageTelling& store_;
  std::unique_ptr<store::Watch> beneath_;
};

DamageTelling::DamageTelling(store::Store& beneath, Tell tell) : beneath_(beneath), tell_(std::move(tell)) {}
DamageTelling::DamageTelling(std::unique_ptr<store::Store> beneath, Tell tell)
    : owned_(std::move(beneath)), beneath_(*owned_), tell_(std::move(tell)) {}
DamageTelling::~DamageTelling() = default;

void DamageTelling::look(const store::Record& record) {
  const Error* damage = core::damage_of(record.value);
  if (damage == nullptr) return;
  const std::lock_guard lock(mutex_);
  std::set<std::string>& told = told_[record.key.kind];
  if (told.size() > kToldOfAKindMax || !told.insert(record.key.name).second) return;
  if (told.size() <= kToldOfAKindMax) return tell_(record.key, *damage);
  tell_(record.key, {damage->code,
                     fmt::format("more than {} records of kind {} are damaged; the others are not named here, "
                                 "`croft check` names them",
                                 kToldOfAKindMax, core::name_of(record.key.kind)),
                     {}});
}

Result<std::optional<store::Record>> DamageTelling::get(const core::Key& key, Deadline deadline) {
  TRY(auto record, beneath_.get(key, deadline));
  if (record) look(*record);
  return record;
}

Result<std::vector<std::optional<store::Record>>> DamageTelling::get_many(std::span<const core::Key> keys,
                                                                          Deadline deadline) {
  TRY(auto records, beneath_.get_many(keys, deadline));
  for (const auto& record : records) {
    if (record) look(*record);
  }
  return records;
}

Result<store::Page> DamageTelling::list(const store::ListRequest& request, Deadline deadline) {
  TRY(store::Page page, beneath_.list(request, deadline));
  for (const store::Record& record : page.records) look(record);
  return page;
}

Result<store::KeyPage> DamageTelling::list_keys(const store::ListRequest& request, Deadline deadline) {
  return beneath_.list_keys(request, deadline);
}

Result<store::ReadAnswer> DamageTelling::read(const core::Missing& wanted, Deadline deadline) {
  TRY(store::ReadAnswer answer, beneath_.read(wanted, deadline));
  for (const auto& record : answer.records) {
    if (record) look(*record);
  }
  for (const auto& list : answer.lists) {
    for (const store::Record& record : list) look(record);
  }
  return answer;
}

Result<store::Revision> DamageTelling::commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                              Deadline deadline) {
  return beneath_.commit(writes, token, deadline);
}

Result<store::Revision> DamageTelling::commit_as_of(store::Revision as_of, std::span<const store::Write> writes,
                                                    const store::WriteToken& token, Deadline deadline) {
  return beneath_.commit_as_of(as_of, writes, token, deadline);
}

Result<store::Fate> DamageTelling::fate_of(std::span<const store::Write> writes, const store::WriteToken& token,
                                           Deadline deadline) {
  return beneath_.fate_of(writes, token, deadline);
}

Result<store::Revision> DamageTelling::position(Deadline deadline) { return beneath_.position(deadline); }

Result<std::unique_ptr<store::Watch>> DamageTelling::watch(const store::WatchScope& scope, store::Revision after,
                                                           Deadline deadline) {
  TRY(auto beneath, beneath_.watch(scope, after, deadline));
  return std::unique_ptr<store::Watch>(std::make_unique<TellingWatch>(*this, std::move(beneath)));
}

Result<std::unique_ptr<store::Store::Turn>> DamageTelling::take_turn(Deadline deadline) {
  return beneath_.take_turn(deadline);
}

store::Capabilities DamageTelling::capabilities() const { return beneath_.capabilities(); }

}  // namespace croft::engine
