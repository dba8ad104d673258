#include "ipam/use/damage_telling.h"

#include <utility>

#include <fmt/format.h>

namespace croft::engine {

DamageTelling::DamageTelling(store::Store& beneath, Tell tell) : ForwardingStore(beneath), tell_(std::move(tell)) {}
DamageTelling::DamageTelling(std::unique_ptr<store::Store> beneath, Tell tell)
    : ForwardingStore(*beneath), owned_(std::move(beneath)), tell_(std::move(tell)) {}
DamageTelling::~DamageTelling() = default;

void DamageTelling::look(const store::Record& record) {
  if (record.value) return;
  const std::lock_guard lock(mutex_);
  std::set<std::string>& told = told_[record.key.kind];
  if (told.size() > kToldOfAKindMax || !told.insert(record.key.name).second) return;
  if (told.size() <= kToldOfAKindMax) return tell_(record.key, record.value.error());
  tell_(record.key, {record.value.error().code,
                     fmt::format("more than {} records of kind {} are damaged; the others are not named here, "
                                 "`croft check` names them",
                                 kToldOfAKindMax, core::name_of(record.key.kind)),
                     {}});
}

Result<void> DamageTelling::for_each(const store::ListRequest& request, const Until& until, const Take& take) {
  return beneath().for_each(request, until, [&](store::Record& record) {
    look(record);
    return take(record);
  });
}

Result<store::ReadAnswer> DamageTelling::read(const core::Missing& wanted, Deadline deadline) {
  TRY(store::ReadAnswer answer, ForwardingStore::read(wanted, deadline));
  for (const auto& record : answer.records) {
    if (record) look(*record);
  }
  for (const auto& list : answer.lists) {
    for (const store::Record& record : list) look(record);
  }
  return answer;
}

}  // namespace croft::engine
