// A static process that connects to etcd, reads twice, writes once and ends: what the transport costs a lone plugin.
// It is built twice, with TLS and without.
//
// usage: etcd_process ENDPOINT [CA CERTIFICATE KEY]

#include <cstdio>

#include "os/clock.h"
#include "os/process.h"
#include "store/etcd/client.h"
#ifdef CROFT_BENCH_TLS
#include "http/tls.h"
#endif

int main(int argc, char** argv) {
  using namespace croft;
  using namespace croft::store::etcd;
  if (argc != 2 && argc != 5) return 2;
  const os::SystemClock clock;
  os::SystemRandom random;
  ClientOptions options;
  options.endpoints = {argv[1]};
#ifdef CROFT_BENCH_TLS
  if (argc == 5) {
    os::TlsFiles files;
    files.ca_file = argv[2];
    files.certificate_file = argv[3];
    files.key_file = argv[4];
    options.security = os::make_tls(std::move(files));
  }
#endif
  const auto client = Client::make(std::move(options), clock, random);
  if (!client) {
    std::fprintf(stderr, "%s\n", client.error().message.c_str());
    return 2;
  }
  const Deadline deadline = Deadline::after(clock.now(), std::chrono::seconds{10});
  TxnRequest read;
  for (const char* key : {"bench/a", "bench/b"}) {
    *read.add_success() = wire::etcd::to_get(wire::etcd::range_of_key(key));
  }
  TxnRequest write;
  *write.add_success() = wire::etcd::to_put("bench/a", "x");
  for (const TxnRequest* txn : {&read, &read, &write}) {
    const auto done = (*client)->txn(*txn, deadline);
    if (done) continue;
    std::fprintf(stderr, "%s\n", done.error().message.c_str());
    return 1;
  }
  os::end_process(0);
}
