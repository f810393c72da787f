// SPDX-License-Identifier: Apache-2.0
#include "host/identity/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "base/cpu_features.h"
#include "host/identity/holder.h"

namespace tw::host {
namespace {

const auto* raw(const wire::Token::Key& key) { return reinterpret_cast<const unsigned char*>(key.data()); }

void demand_tls_13(SSL_CTX* context) {
  TW_CHECK(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1);
  // Without instructions for AES, ChaCha20 is several times faster.
  const char* const suites = cpu_features().aes ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
                                                : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
  TW_CHECK(SSL_CTX_set_ciphersuites(context, suites) == 1);
  SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA | SSL_OP_NO_TICKET);
  // An unread ticket would cause a reset, which loses the last bytes.
  TW_CHECK(SSL_CTX_set_num_tickets(context, 0) == 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_cert_list(context, 8 << 10);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // Checked by objection_to, after the handshake: only then can the other side be sent the reason.
  SSL_CTX_set_cert_verify_callback(
      context, [](X509_STORE_CTX*, void*) { return 1; }, nullptr);
}

}  // namespace

void Tls::Free::operator()(SSL_CTX* context) const { SSL_CTX_free(context); }

Tls::Tls(const wire::Token& token, const Options& options)
    : run_(run_of(token)), run_key_(token.run_key), options_(options), context_(SSL_CTX_new(TLS_method())) {
  TW_CHECK(context_ != nullptr);
  demand_tls_13(context_.get());
}

Tls::~Tls() = default;

CipherThread& Tls::cipher_thread(Loop& loop) const {
  if (!cipher_thread_) cipher_thread_ = std::make_unique<CipherThread>(loop, options_.cipher_thread);
  return *cipher_thread_;
}

Result<std::unique_ptr<Tls>> Tls::open(const wire::Token& token, std::int64_t now_unix_s,
                                       const Options& options) {
  std::unique_ptr<Tls> tls(new Tls(token, options));
  EVP_PKEY* const key =
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, raw(token.secret), token.secret.size());
  const auto* certificate = reinterpret_cast<const unsigned char*>(token.certificate.data());
  SSL_CTX* const context = tls->context();
  const bool fits =
      SSL_CTX_use_certificate_ASN1(context, static_cast<int>(token.certificate.size()), certificate) == 1 &&
      SSL_CTX_use_PrivateKey(context, key) == 1 && SSL_CTX_check_private_key(context) == 1;
  EVP_PKEY_free(key);
  ERR_clear_error();
  if (!fits) return Error{"the parts of the token do not fit together; `tw token FOLDER` makes another"};
  if (const auto objection = tls->objection_to(SSL_CTX_get0_certificate(context), now_unix_s))
    return Error{*objection};
  return tls;
}

std::optional<std::string> Tls::objection_to(X509* certificate, std::int64_t now_unix_s) const {
  const auto holder = holder_of(certificate, run_key_, run_, now_unix_s);
  if (!holder) return holder.error().message;
  const std::string& role = holder.value().role;
  if (role != name_of(wire::Role::peer) && role != name_of(wire::Role::anchor)) {
    return fmt::format(
        "the token of run {} is for the role {}, which does not train; `tw token FOLDER --role peer` "
        "makes another",
        run_, role);
  }
  return std::nullopt;
}

}  // namespace tw::host
