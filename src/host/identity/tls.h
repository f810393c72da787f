// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "wire/token.h"

struct ssl_ctx_st;
struct x509_st;

namespace tw::host {

/// Mutual authentication of peers: only TLS 1.3, with a certificate of the run's key on both sides. Outlives
/// the channels that are made with it.
class Tls {
 public:
  /// Bytes after which a connection renews its key: 2^24.5 full records wear out one of AES-GCM (RFC 8446,
  /// section 5.5), these are 2^22.
  static constexpr std::uint64_t kKeyBytes = std::uint64_t{64} << 30;

  /// The error is for the holder of the token: its parts do not match, it has expired, or its role does not
  /// train.
  static Result<std::unique_ptr<Tls>> open(const wire::Token& token, std::int64_t now_unix_s,
                                           std::uint64_t key_bytes = kKeyBytes);

  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  /// Why the holder of this certificate may not take part, in words for both sides; nothing: it may.
  std::optional<std::string> objection_to(x509_st* certificate, std::int64_t now_unix_s) const;

  /// For channels. It accepts any certificate: its user must call objection_to.
  ssl_ctx_st* context() const { return context_.get(); }

  std::uint64_t key_bytes() const { return key_bytes_; }

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };

  Tls(const wire::Token& token, std::uint64_t key_bytes);

  std::string run_;
  wire::Token::Key run_key_;
  std::uint64_t key_bytes_;
  std::unique_ptr<ssl_ctx_st, Free> context_;
};

}  // namespace tw::host
