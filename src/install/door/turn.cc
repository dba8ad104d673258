#include "install/door/turn.h"

#include <algorithm>

#include <fmt/format.h>

#include "install/format/record.h"
#include "os/files.h"

namespace croft::edge {

InstallTurn::~InstallTurn() {
  if (lock_.is_held()) static_cast<void>(os::remove_file_durably(lock_.path()));
}

Result<bool> is_installed_kubeconfig(const std::string& path) {
  const std::string record_path = fmt::format("{}/{}", os::directory_of(path), wire::kInstallRecordName);
  const auto text = os::read_file(record_path, wire::kInstallRecordBytesMax);
  if (!text && text.error().code == ErrorCode::not_found) return false;
  if (!text) return fail(text.error());
  const auto record = wire::decode_install_record(*text);
  if (!record) return fail(Error(record.error()).in(record_path));
  const std::string name = path.substr(path.rfind('/') + 1);
  return std::ranges::any_of(record->entries, [&](const auto& entry) {
    return entry.kind == wire::InstallRecord::Kind::kubeconfig && entry.name == name;
  });
}

}  // namespace croft::edge
