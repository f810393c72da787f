// SPDX-License-Identifier: Apache-2.0
#include "host/identity/announcement.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <memory>

#include "host/address.h"

namespace tw::host {
namespace {

// Signature, then what is signed: purpose, the end, length of the address, the address, the certificate.
constexpr std::string_view kPurpose = "tw-peer1";
constexpr std::size_t kSignatureBytes = 64;  // of Ed25519
constexpr std::size_t kHeadBytes = kPurpose.size() + 8 + 1;

struct Free {
  void operator()(X509* certificate) const { X509_free(certificate); }

  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }

  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

bool verify(std::span<const std::byte> signature, std::span<const std::byte> text, X509* signer) {
  const std::unique_ptr<EVP_MD_CTX, Free> context(EVP_MD_CTX_new());
  return EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, X509_get0_pubkey(signer)) == 1 &&
         EVP_DigestVerify(context.get(), raw(signature.data()), signature.size(), raw(text.data()),
                          text.size()) == 1;
}

}  // namespace

std::vector<std::byte> sign_announcement(const wire::Token& token, const std::string& address,
                                         std::int64_t until_unix_s) {
  TW_CHECK(address.size() <= wire::kMostTokenText);
  std::vector<std::byte> bytes(kSignatureBytes);
  const auto append = [&bytes](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  append(std::as_bytes(std::span(kPurpose)));
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(until_unix_s >> (8 * i)));
  bytes.push_back(static_cast<std::byte>(address.size()));
  append(std::as_bytes(std::span(address)));
  append(token.certificate);

  const std::unique_ptr<EVP_PKEY, Free> key(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, raw(token.secret.data()), token.secret.size()));
  const std::unique_ptr<EVP_MD_CTX, Free> context(EVP_MD_CTX_new());
  std::size_t size = kSignatureBytes;
  const auto text = std::span(bytes).subspan(kSignatureBytes);
  TW_CHECK(EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1);
  TW_CHECK(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(bytes.data()), &size,
                          raw(text.data()), text.size()) == 1);
  return bytes;
}

std::optional<std::string> read_announcement(std::span<const std::byte> bytes, const Tls& tls,
                                             std::int64_t now_unix_s) {
  if (bytes.size() < kSignatureBytes + kHeadBytes || bytes.size() > wire::kMostAnnouncementBytes)
    return std::nullopt;
  const auto text = bytes.subspan(kSignatureBytes);
  const auto purpose = std::as_bytes(std::span(kPurpose));
  if (!std::equal(purpose.begin(), purpose.end(), text.begin())) return std::nullopt;
  std::int64_t until = 0;
  for (std::size_t i = 0; i < 8; ++i)
    until |= static_cast<std::int64_t>(std::to_integer<std::uint64_t>(text[purpose.size() + i]) << (8 * i));
  const auto length = std::to_integer<std::size_t>(text[kHeadBytes - 1]);
  if (now_unix_s >= until || text.size() < kHeadBytes + length) return std::nullopt;
  const std::string address(reinterpret_cast<const char*>(&text[kHeadBytes]), length);
  if (!parse_address(address)) return std::nullopt;

  const unsigned char* at = raw(text.data()) + kHeadBytes + length;
  const auto certificate_bytes = static_cast<long>(text.size() - kHeadBytes - length);
  const std::unique_ptr<X509, Free> certificate(d2i_X509(nullptr, &at, certificate_bytes));
  const bool sound = certificate && !tls.objection_to(certificate.get(), now_unix_s) &&
                     verify(bytes.first(kSignatureBytes), text, certificate.get());
  ERR_clear_error();
  return sound ? std::optional(address) : std::nullopt;
}

}  // namespace tw::host
