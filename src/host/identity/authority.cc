// SPDX-License-Identifier: Apache-2.0
#include "host/identity/authority.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <utility>

#include "base/cause_text.h"
#include "base/result.h"
#include "base/text/text_file.h"
#include "host/system/calendar.h"

namespace tw::host {
namespace {

struct FreeX509 {
  void operator()(X509* certificate) const { X509_free(certificate); }
};

using Certificate = std::unique_ptr<X509, FreeX509>;

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};

using Bio = std::unique_ptr<BIO, FreeBio>;

// A peer whose clock is late must not find the token of today to be one of tomorrow.
constexpr std::int64_t kClocksDiffer_s = 3600;
constexpr std::uint64_t kMostPemBytes = 64 << 10;
constexpr std::int64_t kAuthorityLasts_s = 50LL * 365 * 86400;

void set_field(X509_NAME* name, int field, const std::string& text) {
  if (text.empty()) return;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  TW_CHECK(X509_NAME_add_entry_by_NID(name, field, MBSTRING_UTF8, bytes, static_cast<int>(text.size()), -1,
                                      0) == 1);
}

struct Content {
  std::string run;
  std::string unit;
  std::int64_t from_unix_s;
  std::int64_t to_unix_s;
};

Certificate make_certificate(const Content& content, EVP_PKEY* holder, EVP_PKEY* signer) {
  Certificate certificate(X509_new());
  X509* const x = certificate.get();
  X509_set_version(x, X509_VERSION_3);
  std::uint64_t serial = 0;
  TW_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(x), serial >> 1);
  set_field(X509_get_issuer_name(x), NID_organizationName, content.run);
  set_field(X509_get_subject_name(x), NID_organizationName, content.run);
  set_field(X509_get_subject_name(x), NID_organizationalUnitName, content.unit);
  TW_CHECK(ASN1_TIME_set(X509_getm_notBefore(x), content.from_unix_s) != nullptr);
  TW_CHECK(ASN1_TIME_set(X509_getm_notAfter(x), content.to_unix_s) != nullptr);
  TW_CHECK(X509_set_pubkey(x, holder) == 1);
  TW_CHECK(X509_sign(x, signer, nullptr) > 0);
  return certificate;
}

std::string pem_of(BIO* bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  return {text, static_cast<std::size_t>(size)};
}

Result<std::string> content_of(const std::string& path, const std::string& folder) {
  auto text = read_text_file(path, kMostPemBytes);
  if (!text) return Error{fmt::format("{}; `tw init {}` makes a run folder", text.error().message, folder)};
  return text;
}

Error unreadable(const std::string& path) {
  return Error{fmt::format("{} is damaged: expected what `tw init` wrote", path)};
}

Error exists_already(const std::string& path) {
  return Error{fmt::format("{} exists already, and is not replaced; choose another place", path)};
}

}  // namespace

void Authority::Free::operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }

Authority::Authority(std::string name, Key key) : name_(std::move(name)), key_(std::move(key)) {}

Authority::~Authority() = default;
Authority::Authority(Authority&&) noexcept = default;

Authority Authority::create(const std::string& name) {
  Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  TW_CHECK(key != nullptr);
  return {name, std::move(key)};
}

Result<Authority> Authority::open(const std::string& folder) {
  const std::string key_path = folder + "/ca.key";
  const std::string certificate_path = folder + "/ca.crt";
  TW_TRY(const auto key_text, content_of(key_path, folder));
  TW_TRY(const auto certificate_text, content_of(certificate_path, folder));

  const Bio key_bio(BIO_new_mem_buf(key_text.data(), static_cast<int>(key_text.size())));
  Key key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
  if (!key || EVP_PKEY_get_id(key.get()) != EVP_PKEY_ED25519) return unreadable(key_path);
  const Bio bio(BIO_new_mem_buf(certificate_text.data(), static_cast<int>(certificate_text.size())));
  const Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!certificate || X509_verify(certificate.get(), key.get()) != 1) return unreadable(certificate_path);
  char name[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_organizationName, name,
                            sizeof name);
  return Authority(name, std::move(key));
}

Status Authority::save(const std::string& folder) const {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{fmt::format("cannot make the folder {}: {}", folder, cause_text(error))};
  const Bio key(BIO_new(BIO_s_mem()));
  TW_CHECK(PEM_write_bio_PKCS8PrivateKey(key.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
  const std::string key_path = folder + "/ca.key", certificate_path = folder + "/ca.crt";
  for (const std::string& path : {key_path, certificate_path}) {
    if (std::filesystem::exists(path, error)) return exists_already(path);
  }
  const std::int64_t now = std::time(nullptr);
  const auto certificate = make_certificate({name_, "run", now - kClocksDiffer_s, now + kAuthorityLasts_s},
                                            key_.get(), key_.get());
  const Bio bio(BIO_new(BIO_s_mem()));
  TW_CHECK(PEM_write_bio_X509(bio.get(), certificate.get()) == 1);
  if (Status written = write_secret_file(key_path, pem_of(key.get())); !written) return written;
  Status written = write_secret_file(certificate_path, pem_of(bio.get()));
  if (!written) std::filesystem::remove(key_path, error);  // another attempt is to find nothing in its way
  return written;
}

wire::Token Authority::issue(const Terms& terms) const {
  wire::Token token{.run = name_, .role = terms.role, .expires_unix_s = terms.expires_unix_s};
  token.addresses = terms.addresses;
  const Key holder(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  std::size_t size = token.secret.size();
  TW_CHECK(EVP_PKEY_get_raw_private_key(holder.get(), reinterpret_cast<unsigned char*>(token.secret.data()),
                                        &size) == 1);
  TW_CHECK(EVP_PKEY_get_raw_public_key(key_.get(), reinterpret_cast<unsigned char*>(token.run_key.data()),
                                       &size) == 1);
  const auto certificate = make_certificate(
      {name_, name_of(terms.role), terms.from_unix_s - kClocksDiffer_s, terms.expires_unix_s}, holder.get(),
      key_.get());
  token.certificate.resize(static_cast<std::size_t>(i2d_X509(certificate.get(), nullptr)));
  auto* at = reinterpret_cast<unsigned char*>(token.certificate.data());
  i2d_X509(certificate.get(), &at);
  return token;
}

wire::Token token_for_one_run(const std::string& name, std::int64_t lifetime_s) {
  const std::int64_t now = now_unix_s();
  return Authority::create(name).issue({.from_unix_s = now, .expires_unix_s = now + lifetime_s});
}

Status write_secret_file(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 && errno == EEXIST) return exists_already(path);
  const auto size = static_cast<ssize_t>(text.size());
  const bool written = file >= 0 && ::write(file, text.data(), text.size()) == size && ::fsync(file) == 0;
  const int error = errno;
  if (file >= 0) ::close(file);
  if (written) return Unit{};
  if (file >= 0) ::unlink(path.c_str());
  return Error{fmt::format("cannot write {}: {}", path, cause_text(error))};
}

std::string date_of(std::int64_t unix_s) {
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(static_cast<std::time_t>(unix_s)));
}

}  // namespace tw::host
