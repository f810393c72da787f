// SPDX-License-Identifier: Apache-2.0
#include "host/identity/holder.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <algorithm>
#include <ctime>
#include <string_view>

#include "host/identity/authority.h"

namespace tw::host {
namespace {

constexpr std::string_view kPageIssuer = "tradewind ";  ///< of WebCertificate; the run follows

/// Untrusted text, escaped for display.
std::string field_of(X509_NAME* name, int field) {
  char text[65] = "";
  X509_NAME_get_text_by_NID(name, field, text, sizeof text);
  std::string shown = text;
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return shown;
}

std::int64_t unix_seconds(const ASN1_TIME* time) {
  std::tm broken_down{};
  if (ASN1_TIME_to_tm(time, &broken_down) != 1) return 0;
  return timegm(&broken_down);
}

/// Its key is as `tw token` makes them, and it names a run, this one or another, and a role.
bool is_of_a_run(X509* certificate) {
  const EVP_PKEY* const key = X509_get0_pubkey(certificate);
  X509_NAME* const subject = X509_get_subject_name(certificate);
  return key != nullptr && EVP_PKEY_get_id(key) == EVP_PKEY_ED25519 &&
         !field_of(subject, NID_organizationName).empty() &&
         !field_of(subject, NID_organizationalUnitName).empty();
}

std::string issuer_of(X509* certificate) {
  X509_NAME* const issuer = X509_get_issuer_name(certificate);
  const std::string name = field_of(issuer, NID_commonName);
  return name.empty() ? field_of(issuer, NID_organizationName) : name;
}

}  // namespace

Result<Holder> holder_of(X509* certificate, const wire::Token::Key& run_key, const std::string& run,
                         std::int64_t now_unix_s) {
  const auto* raw = reinterpret_cast<const unsigned char*>(run_key.data());
  EVP_PKEY* const key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw, run_key.size());
  const bool of_this_run = key != nullptr && X509_verify(certificate, key) == 1;
  EVP_PKEY_free(key);
  ERR_clear_error();
  X509_NAME* const subject = X509_get_subject_name(certificate);
  if (!of_this_run && !is_of_a_run(certificate))
    return Error{fmt::format("the certificate, issued by '{}', is of no token", issuer_of(certificate))};
  if (!of_this_run) {
    return Error{
        fmt::format("the token is not of run {} but of one that calls itself '{}'; get a token of this run "
                    "(`tw token FOLDER` where its folder is)",
                    run, field_of(subject, NID_organizationName))};
  }
  const std::int64_t from = unix_seconds(X509_get0_notBefore(certificate));
  const std::int64_t to = unix_seconds(X509_get0_notAfter(certificate));
  if (now_unix_s >= to)
    return Error{fmt::format("the token of run {} expired on {}; `tw token FOLDER` makes a new one", run,
                             date_of(to))};
  if (now_unix_s < from)
    return Error{
        fmt::format("the token of run {} holds from {} on, and the clock that it is checked by says {}; set "
                    "the clock that is wrong",
                    run, date_of(from), date_of(now_unix_s))};
  return Holder{field_of(subject, NID_organizationalUnitName), to};
}

std::string advice_on_port_of(X509* certificate) {
  if (is_of_a_run(certificate)) return "";
  if (issuer_of(certificate).starts_with(kPageIssuer))
    return "; this is the port of a page (--watch), not of a peer: dial that of the peer";
  return "; another service has this port, or a proxy in between reads the traffic";
}

std::optional<std::int64_t> begin_of(const wire::Token& token) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(token.certificate.data());
  X509* const certificate = d2i_X509(nullptr, &bytes, static_cast<long>(token.certificate.size()));
  ERR_clear_error();
  if (certificate == nullptr) return std::nullopt;
  const std::int64_t begin = unix_seconds(X509_get0_notBefore(certificate));
  X509_free(certificate);
  return begin;
}

}  // namespace tw::host
