// SPDX-License-Identifier: Apache-2.0
#include "host/identity/holder.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <algorithm>
#include <ctime>

#include "host/identity/authority.h"

namespace tw::host {
namespace {

/// Untrusted text, escaped for display.
std::string field_of(X509* certificate, int field) {
  char text[65] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), field, text, sizeof text);
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

}  // namespace

Result<Holder> holder_of(X509* certificate, const wire::Token::Key& run_key, const std::string& run,
                         std::int64_t now_unix_s) {
  const auto* raw = reinterpret_cast<const unsigned char*>(run_key.data());
  EVP_PKEY* const key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw, run_key.size());
  const bool of_this_run = key != nullptr && X509_verify(certificate, key) == 1;
  EVP_PKEY_free(key);
  ERR_clear_error();
  if (!of_this_run) {
    return Error{
        fmt::format("the token is not of run {} but of one that calls itself '{}'; get a token of this run "
                    "(`tw token FOLDER` where its folder is)",
                    run, field_of(certificate, NID_organizationName))};
  }
  const std::int64_t from = unix_seconds(X509_get0_notBefore(certificate));
  const std::int64_t to = unix_seconds(X509_get0_notAfter(certificate));
  if (now_unix_s >= to)
    return Error{fmt::format("the token of run {} expired on {}; `tw token FOLDER` makes a new one", run,
                             date_of(to))};
  if (now_unix_s < from)
    return Error{fmt::format("the token of run {} holds from {} on; is a clock wrong?", run, date_of(from))};
  return Holder{field_of(certificate, NID_organizationalUnitName), to};
}

}  // namespace tw::host
