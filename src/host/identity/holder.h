// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "wire/token.h"

struct x509_st;

namespace tw::host {

/// What the certificate of a token says of its holder.
struct Holder {
  std::string role;
  std::int64_t expires_unix_s = 0;
};

/// The error says why a certificate is none of this run now, in words for both sides.
Result<Holder> holder_of(x509_st* certificate, const wire::Token::Key& run_key, const std::string& run,
                         std::int64_t now_unix_s);

}  // namespace tw::host
