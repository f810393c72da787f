// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/token.h"

struct ssl_ctx_st;

namespace tw::host {

/// The server's side of HTTPS: TLS 1.3 with a certificate that it signs itself. Browsers do not accept the
/// Ed25519 of the tokens, so the key is P-256. It is derived from the secret of the token: the same after a
/// restart, on all peers with this token, and unknown to observers.
class WebCertificate {
 public:
  struct Terms {
    std::vector<std::string> hosts{};  ///< names and numbers of the server
    std::int64_t from_unix_s = 0;
    std::int64_t to_unix_s = 0;
  };

  WebCertificate(const wire::Token& token, const Terms& terms);
  ~WebCertificate();
  WebCertificate(const WebCertificate&) = delete;
  WebCertificate& operator=(const WebCertificate&) = delete;

  ssl_ctx_st* context() const { return context_; }

  /// "sha256//BASE64" of the public key, as curl's --pinnedpubkey takes it.
  const std::string& pin() const { return pin_; }

 private:
  ssl_ctx_st* context_;
  std::string pin_;
};

}  // namespace tw::host
