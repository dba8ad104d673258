#pragma once

#include <atomic>
#include <chrono>
#include <ctime>
#include <string>

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/result.h"
#include "http/tls_parts.h"

// A CA and certificates for tests, as docs/runbooks/vpc-certificates.md makes them.

namespace croft::os {

/// PEM.
struct CertificateWithKey {
  std::string certificate;
  std::string key;
};

struct Validity {
  WallTime from;
  WallTime until;
};

/// EC P-256, signed by `authority`, or by itself where that is none.
inline CertificateWithKey make_certificate(const CertificateWithKey* authority, const std::string& name,
                                           const Validity& validity) {
  tls::start_openssl();
  const tls::Certificate made(X509_new());
  const tls::Key key(EVP_EC_gen("P-256"));
  tls::Certificate issuer;
  tls::Key signer;
  if (authority != nullptr) {
    const tls::Bio certificate(BIO_new_mem_buf(authority->certificate.data(), -1));
    const tls::Bio secret(BIO_new_mem_buf(authority->key.data(), -1));
    issuer.reset(PEM_read_bio_X509(certificate.get(), nullptr, nullptr, nullptr));
    signer.reset(PEM_read_bio_PrivateKey(secret.get(), nullptr, nullptr, nullptr));
  }
  X509* one = made.get();
  const auto set_time = [](ASN1_TIME* into, WallTime time) {
    ASN1_TIME_set(into,
                  static_cast<std::time_t>(std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count()));
  };
  static std::atomic<long> serial = 0;
  X509_set_version(one, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(one), ++serial);
  set_time(X509_getm_notBefore(one), validity.from);
  set_time(X509_getm_notAfter(one), validity.until);
  X509_set_pubkey(one, key.get());
  const auto* common = reinterpret_cast<const unsigned char*>(name.c_str());
  X509_NAME_add_entry_by_NID(X509_get_subject_name(one), NID_commonName, MBSTRING_ASC, common, -1, -1, 0);
  X509* by = issuer ? issuer.get() : one;
  X509_set_issuer_name(one, X509_get_subject_name(by));
  X509V3_CTX context{};
  X509V3_set_ctx(&context, by, one, nullptr, nullptr, 0);
  const auto extend = [&](int what, const std::string& value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
    CROFT_ASSERT(extension != nullptr);
    X509_add_ext(one, extension, -1);
    X509_EXTENSION_free(extension);
  };
  extend(NID_basic_constraints, issuer ? "critical,CA:FALSE" : "critical,CA:TRUE,pathlen:0");
  extend(NID_key_usage, issuer ? "critical,digitalSignature" : "critical,keyCertSign,cRLSign");
  extend(NID_subject_key_identifier, "hash");
  if (issuer) {
    extend(NID_ext_key_usage, "serverAuth,clientAuth");
    extend(NID_authority_key_identifier, "keyid:always");
    extend(NID_subject_alt_name, "DNS:" + name);
  }
  CROFT_ASSERT(X509_sign(one, signer ? signer.get() : key.get(), EVP_sha256()) != 0);
  const auto text_of = [](BIO* bio) {
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(bio, &bytes);
    return std::string(bytes, static_cast<std::size_t>(size));
  };
  const tls::Bio certificate(BIO_new(BIO_s_mem()));
  const tls::Bio secret(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(certificate.get(), one);
  PEM_write_bio_PKCS8PrivateKey(secret.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {text_of(certificate.get()), text_of(secret.get())};
}

inline CertificateWithKey make_authority(const std::string& name, const Validity& validity) {
  return make_certificate(nullptr, name, validity);
}

}  // namespace croft::os
