// SPDX-License-Identifier: Apache-2.0
#include "host/identity/viewers.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "base/text/number.h"
#include "host/identity/holder.h"

namespace tw::host {
namespace {

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};

using Digest = std::array<unsigned char, 32>;

Digest hmac(const wire::Token::Key& key, std::string_view text) {
  Digest digest{};
  unsigned size = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  TW_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, text.size(), digest.data(),
                &size) != nullptr);
  return digest;
}

/// A certificate is no secret, since peers show theirs: a viewer proves that it has the key, too.
bool belongs_to(X509* certificate, const wire::Token::Key& secret) {
  const std::unique_ptr<EVP_PKEY, FreeKey> key(EVP_PKEY_new_raw_private_key(
      EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(secret.data()), secret.size()));
  return key && X509_check_private_key(certificate, key.get()) == 1;
}

}  // namespace

Viewers::Viewers(const wire::Token& own) : run_(run_of(own)), run_key_(own.run_key), pass_key_{} {
  const Digest digest = hmac(own.secret, "tradewind viewer pass");
  std::transform(digest.begin(), digest.end(), pass_key_.begin(),
                 [](unsigned char byte) { return std::byte{byte}; });
}

Result<std::int64_t> Viewers::judge(const std::string& text, std::int64_t now_unix_s) const {
  const auto token = wire::token_in(text);
  if (!token) return token.error();
  const auto* bytes = reinterpret_cast<const unsigned char*>(token.value().certificate.data());
  const std::unique_ptr<X509, FreeCertificate> certificate(
      d2i_X509(nullptr, &bytes, static_cast<long>(token.value().certificate.size())));
  const bool whole = certificate && belongs_to(certificate.get(), token.value().secret);
  ERR_clear_error();
  if (!whole) return Error{"the parts of the token do not fit together; `tw token FOLDER` makes another"};
  TW_TRY(const auto holder, holder_of(certificate.get(), run_key_, run_, now_unix_s));
  return holder.expires_unix_s;
}

std::string Viewers::pass_until(std::int64_t unix_s) const {
  std::string pass = fmt::format("{}.", unix_s);
  for (const unsigned char byte : hmac(pass_key_, std::to_string(unix_s)))
    pass += fmt::format("{:02x}", byte);
  return pass;
}

bool Viewers::knows(const std::string& pass, std::int64_t now_unix_s) const {
  const auto until = parse_number<std::int64_t>(std::string_view(pass).substr(0, pass.find('.')));
  if (!until || *until <= now_unix_s) return false;
  const std::string expected = pass_until(*until);
  return pass.size() == expected.size() && CRYPTO_memcmp(pass.data(), expected.data(), pass.size()) == 0;
}

}  // namespace tw::host
