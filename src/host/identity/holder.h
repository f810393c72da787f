// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

}  // namespace tw::host
