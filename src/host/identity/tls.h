// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "host/tcp/cipher_thread.h"
#include "wire/token.h"

struct ssl_ctx_st;
struct x509_st;

namespace tw::host {

/// Mutual authentication of peers: only TLS 1.3, with a certificate of the run's key on both sides. Outlives
/// the channels that are made with it; ends on the thread of their loop.
class Tls {
 public:
  /// Bytes after which a connection renews its key: 2^24.5 full records wear out one of AES-GCM (RFC 8446,
  /// section 5.5), these are 2^22.
  static constexpr std::uint64_t kKeyBytes = std::uint64_t{64} << 30;

  struct Options {
    std::uint64_t key_bytes = kKeyBytes;
    CipherThread::Use cipher_thread = CipherThread::Use::when_fast;
  };

  /// The error is for the holder of the token: its parts do not match, it has expired, or its role does not
  /// train.
  static Result<std::unique_ptr<Tls>> open(const wire::Token& token, std::int64_t now_unix_s,
                                           const Options& options);

  static Result<std::unique_ptr<Tls>> open(const wire::Token& token, std::int64_t now_unix_s) {
    return open(token, now_unix_s, Options{});
  }

  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  /// Why the holder of this certificate may not take part, in words for both sides; nothing: it may.
  std::optional<std::string> objection_to(x509_st* certificate, std::int64_t now_unix_s) const;

  /// For channels. It accepts any certificate: its user must call objection_to.
  ssl_ctx_st* context() const { return context_.get(); }

  std::uint64_t key_bytes() const { return options_.key_bytes; }

  /// The second thread of this loop's channels: all of them are of one loop.
  CipherThread& cipher_thread(Loop& loop) const;

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };

  Tls(const wire::Token& token, const Options& options);

  std::string run_;
  wire::Token::Key run_key_;
  Options options_;
  std::unique_ptr<ssl_ctx_st, Free> context_;
  mutable std::unique_ptr<CipherThread> cipher_thread_;  ///< made for the first channel
};

}  // namespace tw::host
