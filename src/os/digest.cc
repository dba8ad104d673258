#include "os/digest.h"

#include <openssl/evp.h>

#include "base/assert.h"

namespace croft::os {
namespace {

std::string digest(std::string_view bytes, const EVP_MD* kind) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  auto* const to = reinterpret_cast<unsigned char*>(out.data());  // NOLINT(*-reinterpret-cast): OpenSSL's bytes
  CROFT_ASSERT(EVP_Digest(bytes.data(), bytes.size(), to, &size, kind, nullptr) == 1);
  out.resize(size);
  return out;
}

}  // namespace

std::string sha256(std::string_view bytes) { return digest(bytes, EVP_sha256()); }
std::string sha3_256(std::string_view bytes) { return digest(bytes, EVP_sha3_256()); }
std::string sha1(std::string_view bytes) { return digest(bytes, EVP_sha1()); }

}  // namespace croft::os
