#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "os/files.h"
#include "os/scratch_directory.h"
#include "store/etcd/etcd_fixture.h"

namespace croft::store::etcd {

inline constexpr const char* kOpenssl = "/usr/bin/openssl";

/// An authority and what it has signed, made by the openssl program. For tests.
class Authority {
 public:
  Authority(const os::ScratchDirectory& scratch, const std::string& name) : scratch_(scratch), name_(name) {
    run({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name,
         "-days", "2", "-keyout", key(name), "-out", certificate(name)});
  }
  /// `san` as in "IP:127.0.0.1". `begin` and `end` as openssl ca writes times; empty: valid now.
  void sign(const std::string& subject, const std::string& san, const std::string& begin = "",
            const std::string& end = "") const {
    run({"req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + subject,
         "-keyout", key(subject), "-out", scratch_.file(subject + ".csr")});
    const std::string config = scratch_.file(subject + ".cnf");
    write(config, "[ca]\ndefault_ca=a\n[a]\ndatabase=" + scratch_.file(subject + ".db") +
                      "\nnew_certs_dir=" + scratch_.path() +
                      "\nrand_serial=yes\npolicy=p\ndefault_md=sha256\nunique_subject=no\n[p]\n"
                      "commonName=supplied\n[e]\nsubjectAltName=" +
                      san + "\n");
    write(scratch_.file(subject + ".db"), "");
    std::vector<std::string> arguments = {"ca",          "-batch",
                                          "-config",     config,
                                          "-extensions", "e",
                                          "-cert",       certificate(name_),
                                          "-keyfile",    key(name_),
                                          "-in",         scratch_.file(subject + ".csr"),
                                          "-out",        certificate(subject),
                                          "-notext"};
    if (begin.empty()) {
      arguments.insert(arguments.end(), {"-days", "2"});
    } else {
      arguments.insert(arguments.end(), {"-startdate", begin, "-enddate", end});
    }
    run(arguments);
  }
  [[nodiscard]] std::string key(const std::string& subject) const { return scratch_.file(subject + ".key"); }
  [[nodiscard]] std::string certificate(const std::string& subject) const { return scratch_.file(subject + ".crt"); }

 private:
  static void write(const std::string& path, const std::string& content) {
    ASSERT_TRUE(os::replace_file_durably(path, content));
  }
  static void run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), kOpenssl);
    ASSERT_EQ(run_program(arguments), 0) << "openssl " << arguments[1];
  }
  const os::ScratchDirectory& scratch_;
  std::string name_;
};

}  // namespace croft::store::etcd
