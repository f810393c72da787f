// SPDX-License-Identifier: Apache-2.0
#include "host/web/certificate.h"

#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>
#include <string_view>

#include "base/check.h"
#include "host/address.h"

namespace tw::host {
namespace {

constexpr std::int64_t kClocksMayDiffer_s = 3600;
constexpr std::size_t kPointBytes = 65;  ///< of P-256, not compressed

template <class T, auto kFree>
struct Freed {
  void operator()(T* one) const { kFree(one); }
};

template <class T, auto kFree>
using Owned = std::unique_ptr<T, Freed<T, kFree>>;

using Key = Owned<EVP_PKEY, EVP_PKEY_free>;
using Number = Owned<BIGNUM, BN_clear_free>;

/// 384 bits of the secret, modulo the order of the group: as good as a number by chance.
Number private_number(const wire::Token& token, const EC_GROUP* group) {
  constexpr std::string_view kPurpose = "tradewind web key";
  std::array<unsigned char, 48> bits{};
  unsigned size = 0;
  TW_CHECK(HMAC(EVP_sha384(), token.secret.data(), static_cast<int>(token.secret.size()),
                reinterpret_cast<const unsigned char*>(kPurpose.data()), kPurpose.size(), bits.data(),
                &size) != nullptr);
  const Owned<BN_CTX, BN_CTX_free> scratch(BN_CTX_new());
  const Number below(BN_dup(EC_GROUP_get0_order(group)));
  TW_CHECK(BN_sub_word(below.get(), 1) == 1);
  const Number drawn(BN_bin2bn(bits.data(), static_cast<int>(bits.size()), nullptr));
  Number number(BN_new());
  TW_CHECK(BN_mod(number.get(), drawn.get(), below.get(), scratch.get()) == 1);
  TW_CHECK(BN_add_word(number.get(), 1) == 1);
  return number;
}

Key key_of(const wire::Token& token) {
  const Owned<EC_GROUP, EC_GROUP_free> group(EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1));
  const Number number = private_number(token, group.get());
  const Owned<EC_POINT, EC_POINT_free> point(EC_POINT_new(group.get()));
  TW_CHECK(EC_POINT_mul(group.get(), point.get(), number.get(), nullptr, nullptr, nullptr) == 1);
  std::array<unsigned char, kPointBytes> bytes{};
  TW_CHECK(EC_POINT_point2oct(group.get(), point.get(), POINT_CONVERSION_UNCOMPRESSED, bytes.data(),
                              bytes.size(), nullptr) == bytes.size());
  const Owned<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free> builder(OSSL_PARAM_BLD_new());
  TW_CHECK(OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) == 1);
  TW_CHECK(OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_PRIV_KEY, number.get()) == 1);
  TW_CHECK(OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, bytes.data(),
                                            bytes.size()) == 1);
  const Owned<OSSL_PARAM, OSSL_PARAM_free> parameters(OSSL_PARAM_BLD_to_param(builder.get()));
  const Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free> maker(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* key = nullptr;
  TW_CHECK(EVP_PKEY_fromdata_init(maker.get()) == 1);
  TW_CHECK(EVP_PKEY_fromdata(maker.get(), &key, EVP_PKEY_KEYPAIR, parameters.get()) == 1);
  return Key(key);
}

void add_extension(X509* certificate, int which, const std::string& value) {
  const Owned<X509_EXTENSION, X509_EXTENSION_free> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, which, value.c_str()));
  TW_CHECK(extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1);
}

std::string alternative_names(const std::vector<std::string>& hosts) {
  std::string names;
  for (const std::string& host : hosts)
    names += fmt::format("{}{}:{}", names.empty() ? "" : ",", is_number(host) ? "IP" : "DNS", host);
  return names;
}

Owned<X509, X509_free> self_signed(EVP_PKEY* key, const std::string& run,
                                   const WebCertificate::Terms& terms) {
  Owned<X509, X509_free> certificate(X509_new());
  X509* const x = certificate.get();
  X509_set_version(x, X509_VERSION_3);
  std::uint64_t serial = 0;
  TW_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(x), serial >> 1);
  const std::string name = "tradewind " + run;
  const auto* bytes = reinterpret_cast<const unsigned char*>(name.data());
  for (X509_NAME* field : {X509_get_subject_name(x), X509_get_issuer_name(x)})
    TW_CHECK(X509_NAME_add_entry_by_NID(field, NID_organizationName, MBSTRING_UTF8, bytes,
                                        static_cast<int>(std::min<std::size_t>(name.size(), 64)), -1,
                                        0) == 1);
  TW_CHECK(ASN1_TIME_set(X509_getm_notBefore(x), terms.from_unix_s - kClocksMayDiffer_s) != nullptr);
  TW_CHECK(ASN1_TIME_set(X509_getm_notAfter(x), terms.to_unix_s) != nullptr);
  add_extension(x, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(x, NID_ext_key_usage, "serverAuth");
  add_extension(x, NID_subject_alt_name, alternative_names(terms.hosts));
  TW_CHECK(X509_set_pubkey(x, key) == 1);
  TW_CHECK(X509_sign(x, key, EVP_sha256()) > 0);
  return certificate;
}

std::string pin_of(X509* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
  TW_CHECK(size > 0);
  std::array<unsigned char, 32> digest{};
  TW_CHECK(EVP_Digest(der, static_cast<std::size_t>(size), digest.data(), nullptr, EVP_sha256(), nullptr) ==
           1);
  OPENSSL_free(der);
  std::array<unsigned char, 48> text{};
  const int length = EVP_EncodeBlock(text.data(), digest.data(), static_cast<int>(digest.size()));
  return "sha256//" + std::string(text.begin(), text.begin() + length);
}

}  // namespace

WebCertificate::WebCertificate(const wire::Token& token, const Terms& terms)
    : context_(SSL_CTX_new(TLS_server_method())) {
  TW_CHECK(context_ != nullptr);
  const Key key = key_of(token);
  const auto certificate = self_signed(key.get(), token.run, terms);
  TW_CHECK(SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION) == 1);
  TW_CHECK(SSL_CTX_use_certificate(context_, certificate.get()) == 1);
  TW_CHECK(SSL_CTX_use_PrivateKey(context_, key.get()) == 1);
  SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);
  TW_CHECK(SSL_CTX_set_num_tickets(context_, 0) == 1);
  pin_ = pin_of(certificate.get());
}

WebCertificate::~WebCertificate() { SSL_CTX_free(context_); }

}  // namespace tw::host
