// SPDX-License-Identifier: Apache-2.0
#include "host/store/sigv4.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <map>

#include "base/check.h"

namespace tw::host {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::size_t kSha256Bytes = 32;

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string sha256(std::string_view text) {
  std::array<unsigned char, kSha256Bytes> digest{};
  unsigned int length = 0;
  TW_CHECK(EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr) == 1);
  return {digest.begin(), digest.end()};
}

std::string hmac(std::string_view key, std::string_view text) {
  std::array<unsigned char, kSha256Bytes> mac{};
  unsigned int length = 0;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  TW_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, text.size(), mac.data(),
                &length) != nullptr);
  return {mac.begin(), mac.end()};
}

/// Sorted by what is sent, as the server sorts it.
std::string query_of(const S3Target& target) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : target.query)
    parts.push_back(percent_encoded(name, true) + "=" + percent_encoded(value, true));
  std::ranges::sort(parts);
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "&") + part;
  return text;
}

std::string small_letters(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

}  // namespace

std::string percent_encoded(std::string_view text, bool slash_too) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("-._~").find(c) != std::string_view::npos || (c == '/' && !slash_too);
    encoded += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

std::string url_of(const S3Target& target) {
  const std::string query = query_of(target);
  return target.scheme + "://" + target.host + percent_encoded(target.path, false) +
         (query.empty() ? "" : "?" + query);
}

world::HttpRequest sign(world::HttpRequest request, const S3Target& target, const S3Scope& scope,
                        const S3Credentials& credentials) {
  const std::string time =
      fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(static_cast<std::time_t>(scope.unix_s)));
  const std::string day = time.substr(0, 8);
  const std::string body_digest = hex_of(sha256(request.body));
  request.headers.emplace_back("x-amz-content-sha256", body_digest);
  request.headers.emplace_back("x-amz-date", time);
  if (!credentials.session_token.empty())
    request.headers.emplace_back("x-amz-security-token", credentials.session_token);

  std::map<std::string, std::string> headers{{"host", target.host}};
  for (const auto& [name, value] : request.headers) headers[small_letters(name)] = trimmed(value);
  std::string canonical_headers, signed_headers;
  for (const auto& [name, value] : headers) {
    canonical_headers += name + ":" + value + "\n";
    signed_headers += (signed_headers.empty() ? "" : ";") + name;
  }
  const std::string canonical =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, percent_encoded(target.path, false),
                  query_of(target), canonical_headers, signed_headers, body_digest);
  const std::string range = fmt::format("{}/{}/s3/aws4_request", day, scope.region);
  const std::string to_sign =
      fmt::format("{}\n{}\n{}\n{}", kAlgorithm, time, range, hex_of(sha256(canonical)));
  const std::string day_key = hmac("AWS4" + credentials.secret, day);
  const std::string key = hmac(hmac(hmac(day_key, scope.region), "s3"), "aws4_request");
  request.headers.emplace_back(
      "Authorization", fmt::format("{} Credential={}/{},SignedHeaders={},Signature={}", kAlgorithm,
                                   credentials.key_id, range, signed_headers, hex_of(hmac(key, to_sign))));
  request.url = url_of(target);
  return request;
}

}  // namespace tw::host
