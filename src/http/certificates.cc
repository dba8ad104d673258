#include "http/certificates.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "http/tls_parts.h"

namespace croft::os {
namespace {

using tls::Bio;
using tls::Certificate;
using tls::Free;
using tls::Key;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>>;

constexpr std::size_t kNodeNameMax = 253;
constexpr std::size_t kCommonNameMax = 64;  // RFC 5280, ub-common-name

Error broken(std::string_view doing) {
  return {ErrorCode::internal, fmt::format("cannot {}: OpenSSL: {}", doing, tls::openssl_reason()), {}};
}

bool is_node_name(std::string_view name) {
  if (name.empty() || name.size() > kNodeNameMax) return false;
  const auto is_alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  char before = '.';
  for (const char c : name) {
    if (!is_alphanumeric(c) && c != '-' && c != '.') return false;
    if ((c == '.' || before == '.') && !is_alphanumeric(c == '.' ? before : c)) return false;
    before = c;
  }
  return is_alphanumeric(name.back());
}

[[nodiscard]] Result<void> check_name(const std::string& name) {
  if (is_node_name(name)) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("\"{}\" is no name of a node: small letters, digits, '-' and '.', {} bytes at most", name,
                          kNodeNameMax));
}

Bio memory_of(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

[[nodiscard]] Result<Certificate> read_one(const std::string& pem) {
  tls::start_openssl();
  const Bio bio = memory_of(pem);
  Certificate certificate(bio ? PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr) : nullptr);
  if (certificate) return certificate;
  return fail(ErrorCode::invalid_argument, "no certificate that can be read: " + tls::openssl_reason());
}

[[nodiscard]] Result<Key> read_key(const std::string& pem) {
  tls::start_openssl();
  const Bio bio = memory_of(pem);
  const auto no_password = [](char*, int, int, void*) { return 0; };
  Key key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr) : nullptr);
  if (key) return key;
  return fail(ErrorCode::invalid_argument, "no key that can be read: " + tls::openssl_reason());
}

std::string text_of(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

bool set_time(ASN1_TIME* into, WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
  return ASN1_TIME_set(into, static_cast<std::time_t>(seconds)) != nullptr;
}

[[nodiscard]] Result<WallTime> time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) {
    return fail(ErrorCode::invalid_argument, "a certificate has a date that is none");
  }
  return WallTime(std::chrono::seconds(::timegm(&parts)));
}

/// Random, positive, 16 bytes: nobody has to remember which ones were given out.
bool set_serial(X509* certificate) {
  std::array<unsigned char, 16> bytes{};
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) return false;
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7fU) | 0x40U);
  using Number = std::unique_ptr<BIGNUM, Free<BN_free>>;
  const Number number(BN_bin2bn(bytes.data(), bytes.size(), nullptr));
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool extend(X509* certificate, X509V3_CTX* context, int what, const char* value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, context, what, value));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

struct Draft {
  Certificate certificate;
  Key key;
};

[[nodiscard]] Result<Draft> begin(const std::string& name, const Validity& validity) {
  TRY_VOID(check_name(name));
  if (validity.until <= validity.from) {
    return fail(ErrorCode::invalid_argument, "a certificate that ends before it begins");
  }
  tls::start_openssl();
  Draft draft{Certificate(X509_new()), Key(EVP_EC_gen("P-256"))};
  X509* one = draft.certificate.get();
  constexpr long kVersion3 = 2;
  const std::string common = name.substr(0, kCommonNameMax);
  if (one == nullptr || !draft.key || X509_set_version(one, kVersion3) != 1 || !set_serial(one) ||
      !set_time(X509_getm_notBefore(one), validity.from) || !set_time(X509_getm_notAfter(one), validity.until) ||
      X509_set_pubkey(one, draft.key.get()) != 1 ||
      X509_NAME_add_entry_by_NID(X509_get_subject_name(one), NID_commonName, MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>(common.data()), static_cast<int>(common.size()),
                                 -1, 0) != 1) {
    return fail(broken("make a certificate"));
  }
  return draft;
}

[[nodiscard]] Result<CertificateWithKey> finish(const Draft& draft, EVP_PKEY* signer) {
  const Bio certificate(BIO_new(BIO_s_mem()));
  const Bio key(BIO_new(BIO_s_secmem()));
  if (X509_sign(draft.certificate.get(), signer, EVP_sha256()) == 0 || !certificate || !key ||
      PEM_write_bio_X509(certificate.get(), draft.certificate.get()) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key.get(), draft.key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return fail(broken("sign a certificate"));
  }
  return CertificateWithKey{text_of(certificate.get()), text_of(key.get())};
}

}  // namespace

Result<CertificateWithKey> make_authority(const std::string& name, const Validity& validity) {
  TRY(const Draft draft, begin(name, validity));
  X509* one = draft.certificate.get();
  X509V3_CTX context{};
  X509V3_set_ctx(&context, one, one, nullptr, nullptr, 0);
  if (X509_set_issuer_name(one, X509_get_subject_name(one)) != 1 ||
      !extend(one, &context, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !extend(one, &context, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !extend(one, &context, NID_subject_key_identifier, "hash")) {
    return fail(broken("make a CA"));
  }
  return finish(draft, draft.key.get());
}

Result<CertificateWithKey> make_node_certificate(const CertificateWithKey& authority, const std::string& name,
                                                 const Validity& validity) {
  TRY(const Certificate issuer, read_one(authority.certificate));
  TRY(const Key signer, read_key(authority.key));
  if (X509_check_ca(issuer.get()) != 1 || X509_check_private_key(issuer.get(), signer.get()) != 1) {
    static_cast<void>(tls::openssl_reason());
    return fail(ErrorCode::invalid_argument, "the CA's certificate is none of a CA, or its key belongs to another one");
  }
  TRY(const Draft draft, begin(name, validity));
  X509* one = draft.certificate.get();
  X509V3_CTX context{};
  X509V3_set_ctx(&context, issuer.get(), one, nullptr, nullptr, 0);
  const std::string names = "DNS:" + name;
  if (X509_set_issuer_name(one, X509_get_subject_name(issuer.get())) != 1 ||
      !extend(one, &context, NID_basic_constraints, "critical,CA:FALSE") ||
      !extend(one, &context, NID_key_usage, "critical,digitalSignature") ||
      !extend(one, &context, NID_ext_key_usage, "serverAuth,clientAuth") ||
      !extend(one, &context, NID_subject_key_identifier, "hash") ||
      !extend(one, &context, NID_authority_key_identifier, "keyid:always") ||
      !extend(one, &context, NID_subject_alt_name, names.c_str())) {
    return fail(broken("make the certificate of " + name));
  }
  return finish(draft, signer.get());
}

Result<CertificateFacts> certificate_facts(const std::string& pem) {
  TRY(const Certificate certificate, read_one(pem));
  CertificateFacts facts;
  TRY(facts.validity.from, time_of(X509_get0_notBefore(certificate.get())));
  TRY(facts.validity.until, time_of(X509_get0_notAfter(certificate.get())));
  facts.is_authority = X509_check_ca(certificate.get()) == 1;
  facts.dns_names = tls::dns_names_of(certificate.get());
  facts.common_name = tls::common_name_of(certificate.get());
  return facts;
}

Result<bool> is_signed_by(const std::string& pem, const std::string& authority_pem) {
  TRY(const Certificate certificate, read_one(pem));
  TRY(const Certificate authority, read_one(authority_pem));
  const bool is = X509_check_issued(authority.get(), certificate.get()) == X509_V_OK &&
                  X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) == 1;
  static_cast<void>(tls::openssl_reason());
  return is;
}

Result<bool> is_key_of(const CertificateWithKey& one) {
  TRY(const Certificate certificate, read_one(one.certificate));
  TRY(const Key key, read_key(one.key));
  const bool is = X509_check_private_key(certificate.get(), key.get()) == 1;
  static_cast<void>(tls::openssl_reason());
  return is;
}

}  // namespace croft::os
