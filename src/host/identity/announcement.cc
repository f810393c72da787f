// SPDX-License-Identifier: Apache-2.0
#include "host/identity/announcement.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/check.h"
#include "host/address.h"

namespace tw::host {
namespace {

// Signature, then what is signed: purpose, four numbers, length of the address, the address, the certificate.
constexpr std::string_view kPurpose = "tw-peer2";
constexpr std::size_t kSignatureBytes = 64;  // of Ed25519
constexpr std::size_t kNumbers = 4;
constexpr std::size_t kHeadBytes = kPurpose.size() + 8 * kNumbers + 1;

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

std::uint64_t number_at(std::span<const std::byte> bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) number |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return number;
}

/// The end of a signed text.
bool is_signed_by_the_run(std::span<const std::byte> bytes, std::span<const std::byte> certificate_bytes,
                          const Tls& tls, std::int64_t now_unix_s) {
  const unsigned char* at = raw(certificate_bytes.data());
  const std::unique_ptr<X509, Free> certificate(
      d2i_X509(nullptr, &at, static_cast<long>(certificate_bytes.size())));
  const bool sound = certificate && !tls.objection_to(certificate.get(), now_unix_s) &&
                     verify(bytes.first(kSignatureBytes), bytes.subspan(kSignatureBytes), certificate.get());
  ERR_clear_error();
  return sound;
}

}  // namespace

Result<std::vector<std::byte>> sign_announcement(const wire::Token& token, const Announcement& announcement) {
  if (announcement.address.size() > wire::kMostTokenText)
    return Error{fmt::format("the address {} has {} bytes, at most {} were expected", announcement.address,
                             announcement.address.size(), wire::kMostTokenText)};
  std::vector<std::byte> bytes(kSignatureBytes);
  const auto append = [&bytes](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  append(std::as_bytes(std::span(kPurpose)));
  const std::array<std::uint64_t, kNumbers> numbers = {announcement.training.high, announcement.training.low,
                                                       announcement.peer.value,
                                                       static_cast<std::uint64_t>(announcement.until_unix_s)};
  for (const std::uint64_t number : numbers)
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(number >> (8 * i)));
  bytes.push_back(static_cast<std::byte>(announcement.address.size()));
  append(std::as_bytes(std::span(announcement.address)));
  append(token.certificate);

  const std::unique_ptr<EVP_PKEY, Free> key(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, raw(token.secret.data()), token.secret.size()));
  const std::unique_ptr<EVP_MD_CTX, Free> context(EVP_MD_CTX_new());
  std::size_t size = kSignatureBytes;
  const auto text = std::span(bytes).subspan(kSignatureBytes);
  TW_CHECK(EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1);
  TW_CHECK(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(bytes.data()), &size,
                          raw(text.data()), text.size()) == 1);
  TW_CHECK(bytes.size() <= wire::kMostAnnouncementBytes);
  return bytes;
}

Result<Announcement> read_announcement(std::span<const std::byte> bytes, const Tls& tls,
                                       std::int64_t now_unix_s) {
  if (bytes.size() > wire::kMostAnnouncementBytes)
    return Error{
        fmt::format("has {} bytes, at most {} were expected", bytes.size(), wire::kMostAnnouncementBytes)};
  const Error nonsense{"is not what a peer of this version writes"};
  if (bytes.size() < kSignatureBytes + kHeadBytes) return nonsense;
  const auto text = bytes.subspan(kSignatureBytes);
  const auto purpose = std::as_bytes(std::span(kPurpose));
  if (!std::equal(purpose.begin(), purpose.end(), text.begin())) return nonsense;
  std::array<std::uint64_t, kNumbers> numbers{};
  for (std::size_t i = 0; i < kNumbers; ++i) numbers[i] = number_at(text.subspan(purpose.size() + 8 * i));
  const auto length = std::to_integer<std::size_t>(text[kHeadBytes - 1]);
  if (text.size() < kHeadBytes + length) return nonsense;
  Announcement said{.training = {numbers[0], numbers[1]},
                    .peer = PeerId{numbers[2]},
                    .address = {reinterpret_cast<const char*>(text.data()) + kHeadBytes, length},
                    .until_unix_s = static_cast<std::int64_t>(numbers[3])};
  if (!is_signed_by_the_run(bytes, text.subspan(kHeadBytes + length), tls, now_unix_s))
    return Error{"is not signed by a peer of this run"};
  if (now_unix_s >= said.until_unix_s) return Error{"has expired"};
  if (said.until_unix_s > now_unix_s + wire::kAnnouncementLasts_s + wire::kClocksDiffer_s)
    return Error{"is dated ahead of this machine's clock"};
  if (!parse_address(said.address)) return Error{"names no address HOST:PORT"};
  return said;
}

}  // namespace tw::host
