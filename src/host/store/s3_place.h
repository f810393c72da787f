// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "host/store/aws_files.h"
#include "host/store/sigv4.h"
#include "host/system/environment.h"

/// Where a bucket is and in whose name it is used, by the environment that all tools of S3 read. Pure.
namespace tw::host {

/// The environment or the profile says in whose name requests are signed, in a way that is known here or not.
bool names_keys(const Environment& environment, const AwsFiles& files);

/// "s3://bucket/some/key"
struct S3Name {
  std::string bucket;
  std::string key;  ///< as it was given; empty: the bucket

  bool operator==(const S3Name&) const = default;
};

/// It begins with s3://.
bool is_s3(const std::string& url);

/// scheme: of the store, which speaks S3. The error names the URL and what was expected.
Result<S3Name> parse_s3(const std::string& url, std::string_view scheme = "s3://");

struct S3Place {
  std::string root = "s3://";  ///< paths of its objects begin with it
  std::string scheme = "https";
  std::string host;         ///< of the endpoint, with its port if it has one
  bool path_style = false;  ///< the bucket is in the path, not before the host
  std::string region = "us-east-1";
  std::optional<S3Credentials> credentials;  ///< nothing: requests go unsigned
  std::string nobody = "no credentials";     ///< why there are none, for messages
  std::string authorities{};                 ///< world::HttpRequest

  bool operator==(const S3Place&) const = default;
};

/// By AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION, else endpoint_url (that of s3
/// first) and region of the profile; AWS_S3_ADDRESSING_STYLE or addressing_style there: virtual or path, else
/// path with an endpoint; AWS_CA_BUNDLE or ca_bundle there. Keys are AWS_ACCESS_KEY_ID with
/// AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, else those of the profile in the credentials, else in the
/// config.
Result<S3Place> s3_place(const Environment& environment, const AwsFiles& files);

/// Puts the place at an endpoint that `variable` names. The error says what was expected.
Status put_at(S3Place& place, const std::string& endpoint, std::string_view variable);

/// For messages, without secrets: "key AKIA..., region us-east-1, HOST".
std::string who_asks(const S3Place& place);

/// The object, or with an empty key the bucket.
S3Target target_of(const S3Place& place, const S3Name& name);

}  // namespace tw::host
