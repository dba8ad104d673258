#include "store/sqlite/vfs.h"

#include <sqlite3.h>

#include "base/assert.h"

namespace croft::store {
namespace {

constexpr const char* kName = "croft";
sqlite3_vfs* base_vfs = nullptr;

int open_file(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* flags_out) {
  int is_there = 0;
  if ((flags & SQLITE_OPEN_WAL) != 0) base_vfs->xAccess(base_vfs, path, SQLITE_ACCESS_EXISTS, &is_there);
  if (is_there != 0) flags &= ~SQLITE_OPEN_CREATE;
  return base_vfs->xOpen(base_vfs, path, file, flags, flags_out);
}

bool register_vfs() {
  CROFT_ASSERT(sqlite3_initialize() == SQLITE_OK);
  base_vfs = sqlite3_vfs_find(nullptr);
  CROFT_ASSERT(base_vfs != nullptr);
  static sqlite3_vfs ours = *base_vfs;
  ours.zName = kName;
  ours.pNext = nullptr;
  ours.xOpen = open_file;
  return sqlite3_vfs_register(&ours, /*makeDflt=*/0) == SQLITE_OK;
}

}  // namespace

const char* croft_vfs() {
  static const bool kRegistered = register_vfs();
  CROFT_ASSERT(kRegistered);
  return kName;
}

}  // namespace croft::store
