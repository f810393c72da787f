// SPDX-License-Identifier: Apache-2.0
#include "host/store/s3_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/result.h"
#include "base/text/text.h"

namespace tw::host {
namespace {

constexpr std::string_view kScheme = "s3://";

std::string first_set(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (std::string value = environment(name); !value.empty()) return value;
  return {};
}

constexpr const char *kKeyId = "AWS_ACCESS_KEY_ID", *kSecret = "AWS_SECRET_ACCESS_KEY";

/// Names where the keys of a profile come from that is not known here; empty: nothing.
std::string unknown_source(const AwsProfile& profile) {
  for (const char* key : {"role_arn", "credential_process", "sso_session", "sso_start_url"})
    if (profile.contains(key)) return key;
  return {};
}

/// The variable by which a pod or a task gets keys in a way that is not known here; empty: none is set.
std::string unknown_source(const Environment& environment) {
  for (const char* name : {"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                           "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"})
    if (!environment(name).empty()) return name;
  return {};
}

/// What to do about an unknown source.
std::string advice(const std::string& source, const std::string& option) {
  return fmt::format(
      "{}, which is not read; set the variables that \"aws configure export-credentials {}--format env\" "
      "prints",
      source, option);
}

/// The values of the profile under the names of the variables: what the AWS tools call the same.
Environment as_variables(const AwsProfile& profile) {
  return [&profile](const std::string& name) {
    const auto found = profile.find(lower(name));
    return found == profile.end() ? "" : found->second;
  };
}

/// Nothing: `said` has neither part. The error: it has one.
Result<std::optional<S3Credentials>> keys_in(const Environment& said) {
  const S3Credentials keys{said(kKeyId), said(kSecret), said("AWS_SESSION_TOKEN")};
  if (keys.key_id.empty() && keys.secret.empty()) return std::optional<S3Credentials>{};
  if (keys.key_id.empty()) return Error{fmt::format("{} is set without {}", kSecret, kKeyId)};
  if (keys.secret.empty()) return Error{fmt::format("{} is set without {}", kKeyId, kSecret)};
  return std::optional(keys);
}

/// The keys of the environment or the profile, or why there are none.
Status put_credentials(S3Place& place, const Environment& environment, const AwsFiles& files,
                       const AwsProfile& profile) {
  TW_TRY(place.credentials, keys_in(environment));
  if (place.credentials) return Unit{};
  const std::string name = profile_name(environment);
  const auto keys = keys_in(as_variables(profile));
  if (!keys) return Error{fmt::format("the profile {}: {}", name, lower(keys.error().message))};
  place.credentials = keys.value();
  if (place.credentials) return Unit{};
  const std::string trouble = files.trouble.empty() ? "" : "; " + files.trouble;
  if (const std::string source = unknown_source(profile); !source.empty())
    return Error{
        fmt::format("the profile {} has no keys but {}", name, advice(source, "--profile " + name + " "))};
  if (!environment("AWS_PROFILE").empty())
    return Error{
        fmt::format("AWS_PROFILE={}: ~/.aws/credentials and ~/.aws/config have no keys of this profile{}",
                    name, trouble)};
  if (const std::string source = unknown_source(environment); !source.empty())
    place.nobody += fmt::format(" but {}", advice(source, ""));
  place.nobody += trouble;
  return Unit{};
}

}  // namespace

bool is_s3(const std::string& url) { return url.starts_with(kScheme); }

Result<S3Name> parse_s3(const std::string& url, std::string_view scheme) {
  if (!url.starts_with(scheme)) return Error{fmt::format("{}: expected {}BUCKET/KEY", url, scheme)};
  const std::string rest = url.substr(scheme.size());
  const std::size_t slash = rest.find('/');
  S3Name name{rest.substr(0, slash), slash == std::string::npos ? "" : rest.substr(slash + 1)};
  const bool plain = std::ranges::all_of(
      name.bucket, [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_'; });
  if (name.bucket.size() < 3 || name.bucket.size() > 63 || !plain)
    return Error{fmt::format(
        "{}: expected {}BUCKET/KEY with a bucket of 3 to 63 letters, digits, dots and dashes", url, scheme)};
  return name;
}

bool names_keys(const Environment& environment, const AwsFiles& files) {
  const AwsProfile profile = profile_in(files, profile_name(environment));
  const auto has_some = [](const Environment& said) {
    return !said(kKeyId).empty() || !said(kSecret).empty();
  };
  return has_some(environment) || has_some(as_variables(profile)) || !unknown_source(profile).empty() ||
         !unknown_source(environment).empty();
}

Result<S3Place> s3_place(const Environment& environment, const AwsFiles& files) {
  const AwsProfile profile = profile_in(files, profile_name(environment));
  const auto said_there = as_variables(profile);
  const auto said = [&](std::initializer_list<const char*> names, std::initializer_list<const char*> keys) {
    const std::string set = first_set(environment, names);
    return set.empty() ? first_set(said_there, keys) : set;
  };
  S3Place place;
  if (std::string region = said({"AWS_REGION", "AWS_DEFAULT_REGION"}, {"region"}); !region.empty())
    place.region = region;
  TW_TRY(put_credentials(place, environment, files, profile));
  place.authorities = said({"AWS_CA_BUNDLE"}, {"ca_bundle"});
  place.host = fmt::format("s3.{}.amazonaws.com", place.region);
  const std::string endpoint =
      said({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}, {"s3.endpoint_url", "endpoint_url"});
  if (!endpoint.empty()) TW_TRY(put_at(place, endpoint, "AWS_ENDPOINT_URL"));
  const std::string style = said({"AWS_S3_ADDRESSING_STYLE"}, {"s3.addressing_style", "addressing_style"});
  if (style == "path" || style == "virtual") {
    place.path_style = style == "path";
  } else if (!style.empty() && style != "auto") {
    return Error{fmt::format("AWS_S3_ADDRESSING_STYLE={}: expected virtual, path or auto", style)};
  }
  return place;
}

Status put_at(S3Place& place, const std::string& endpoint, std::string_view variable) {
  const std::size_t colon = endpoint.find("://");
  place.scheme = endpoint.substr(0, colon);
  place.host = colon == std::string::npos ? "" : endpoint.substr(colon + 3);
  while (place.host.ends_with('/')) place.host.pop_back();
  place.path_style = true;
  if ((place.scheme == "http" || place.scheme == "https") && !place.host.empty() &&
      place.host.find_first_of("/?#") == std::string::npos)
    return Unit{};
  return Error{fmt::format("{}={}: expected http://HOST[:PORT] or https://HOST[:PORT]", variable, endpoint)};
}

std::string who_asks(const S3Place& place) {
  return fmt::format("{}, region {}, {}",
                     place.credentials ? "key " + place.credentials->key_id : "nobody: " + place.nobody,
                     place.region, place.host);
}

S3Target target_of(const S3Place& place, const S3Name& name) {
  S3Target target{.scheme = place.scheme, .host = place.host, .path = "/" + name.key};
  // A bucket with dots matches no certificate before the host.
  if (place.path_style || name.bucket.find('.') != std::string::npos) {
    target.path = "/" + name.bucket + "/" + name.key;
  } else {
    target.host = name.bucket + "." + place.host;
  }
  return target;
}

}  // namespace tw::host
