// A static process that opens a store, makes one commit as an ADD makes it (a half-full block changes, a handle comes)
// and ends: what a durable commit costs that no daemon makes.
//
// usage: one_commit_process STORE_FILE CONTAINER

#include <cstdio>

#include "commit_sample.h"
#include "os/clock.h"
#include "store/sqlite/sqlite_store.h"

int main(int argc, char** argv) {
  using namespace croft;
  if (argc != 3) return 2;
  const os::SystemClock clock;
  const auto store = store::open_sqlite_store(argv[1], {}, clock, {});
  if (!store) return 1;
  return (*store)->commit(bench::commit_sample(clock.now(), argv[2]), {}, {}) ? 0 : 1;
}
