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

/// What is asked for, before it is spelled as a URL.
struct S3Target {
  std::string scheme = "https";
  std::string host;  ///< with the port where it is not that of the scheme
  std::string path;  ///< not escaped; begins with '/'
  std::vector<std::pair<std::string, std::string>> query{};  ///< not escaped, in any order

  bool operator==(const S3Target&) const = default;
};

struct S3Scope {
  std::string region;
  std::int64_t unix_s = 0;  ///< of the signature
};

/// The URL and headers of a request that the server takes for that of the owner of the credentials. `request`
/// brings method, body and headers that are to be signed (Range, If-Match); the URL is replaced.
world::HttpRequest sign(world::HttpRequest request, const S3Target& target, const S3Scope& scope,
                        const S3Credentials& credentials);

/// The URL without a signature, for buckets that anybody may read.
std::string url_of(const S3Target& target);

/// RFC 3986: all but letters, digits and "-._~" is escaped, '/' where it is asked for.
std::string percent_encoded(std::string_view text, bool slash_too);

}  // namespace tw::host
