// A library start of OpenSSL reads openssl.cnf and takes two dozen locks, which each ADD and DEL would pay for one
// name. These two are what its own EVP_Digest() calls in the end, and they need none; since OpenSSL 3 they are
// "deprecated".
#define OPENSSL_SUPPRESS_DEPRECATED

#include "os/digest.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "base/assert.h"

namespace croft::os {
namespace {

// NOLINTNEXTLINE(*-reinterpret-cast): OpenSSL's bytes
unsigned char* bytes_of(std::string& out) { return reinterpret_cast<unsigned char*>(out.data()); }

}  // namespace

std::string sha256(std::string_view bytes) {
  std::string out(SHA256_DIGEST_LENGTH, '\0');
  SHA256_CTX state;
  CROFT_ASSERT(SHA256_Init(&state) == 1 && SHA256_Update(&state, bytes.data(), bytes.size()) == 1 &&
               SHA256_Final(bytes_of(out), &state) == 1);
  return out;
}

std::string sha1(std::string_view bytes) {
  std::string out(SHA_DIGEST_LENGTH, '\0');
  SHA_CTX state;
  CROFT_ASSERT(SHA1_Init(&state) == 1 && SHA1_Update(&state, bytes.data(), bytes.size()) == 1 &&
               SHA1_Final(bytes_of(out), &state) == 1);
  return out;
}

std::string sha3_256(std::string_view bytes) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  CROFT_ASSERT(EVP_Digest(bytes.data(), bytes.size(), bytes_of(out), &size, EVP_sha3_256(), nullptr) == 1);
  out.resize(size);
  return out;
}

}  // namespace croft::os
