// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "wire/token.h"

struct x509_st;

namespace tw::host {

/// The holder of a token, according to its certificate.
struct Holder {
  std::string role;
  std::int64_t expires_unix_s = 0;
};

/// The error says why the certificate is not valid for this run now, in words for both sides.
Result<Holder> holder_of(x509_st* certificate, const wire::Token::Key& run_key, const std::string& run,
                         std::int64_t now_unix_s);

/// What one who dialed a port should know where it shows this certificate: "; another service has it"; empty
/// where it is of a token.
std::string advice_on_port_of(x509_st* certificate);

/// When the token begins to hold; nothing: its certificate is damaged.
std::optional<std::int64_t> begin_of(const wire::Token& token);

}  // namespace tw::host
