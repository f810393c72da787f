// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "world/http.h"

/// Signatures of requests to object stores that speak S3: AWS Signature Version 4, in the headers. Pure.
/// Source: docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
namespace tw::host {

struct S3Credentials {
  std::string key_id;
  std::string secret;
  std::string session_token;  ///< empty: none

  bool operator==(const S3Credentials&) const = default;
};

/// The target of a request, before it becomes a URL.
struct S3Target {
  std::string scheme = "https";
  std::string host;  ///< with the port unless it is that of the scheme
  std::string path;  ///< not escaped; begins with '/'
  std::vector<std::pair<std::string, std::string>> query{};  ///< not escaped, in any order

  bool operator==(const S3Target&) const = default;
};

struct S3Scope {
  std::string region;
  std::int64_t unix_s = 0;  ///< of the signature
};

/// A request signed with the credentials. `request` has method, body and the headers to sign (Range,
/// If-Match); its URL is replaced.
world::HttpRequest sign(world::HttpRequest request, const S3Target& target, const S3Scope& scope,
                        const S3Credentials& credentials);

/// The URL without a signature, for public buckets.
std::string url_of(const S3Target& target);

/// RFC 3986: all but letters, digits and "-._~" is escaped, '/' only on request.
std::string percent_encoded(std::string_view text, bool slash_too);

}  // namespace tw::host
