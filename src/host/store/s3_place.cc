// SPDX-License-Identifier: Apache-2.0
#include "host/store/s3_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <sstream>

namespace tw::host {
namespace {

constexpr std::string_view kScheme = "s3://";

std::string first_set(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (std::string value = environment(name); !value.empty()) return value;
  return {};
}

std::string without_spaces(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
  return text;
}

/// Keys and values of one section of a file as ~/.aws/credentials.
std::map<std::string, std::string> section_of(const std::string& file, const std::string& section) {
  std::map<std::string, std::string> values;
  std::istringstream lines(file);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    line = without_spaces(line);
    if (line.starts_with('#') || line.empty()) continue;
    if (line.starts_with('[')) inside = line == "[" + section + "]";
    const std::size_t sign = line.find('=');
    if (inside && sign != std::string::npos) values[line.substr(0, sign)] = line.substr(sign + 1);
  }
  return values;
}

Result<std::optional<S3Credentials>> credentials_of(const Environment& environment,
                                                    const std::string& shared_file) {
  S3Credentials found{environment("AWS_ACCESS_KEY_ID"), environment("AWS_SECRET_ACCESS_KEY"),
                      environment("AWS_SESSION_TOKEN")};
  if (found.key_id.empty() != found.secret.empty())
    return Error{fmt::format("{} is set without {}",
                             found.key_id.empty() ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID",
                             found.key_id.empty() ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY")};
  if (!found.key_id.empty()) return std::optional(found);
  const std::string named = environment("AWS_PROFILE");
  auto profile = section_of(shared_file, named.empty() ? "default" : named);
  found = {profile["aws_access_key_id"], profile["aws_secret_access_key"], profile["aws_session_token"]};
  if (!found.key_id.empty() && !found.secret.empty()) return std::optional(found);
  if (!named.empty())
    return Error{fmt::format("AWS_PROFILE={}: ~/.aws/credentials has no keys of this profile", named)};
  return std::optional<S3Credentials>{};
}

}  // namespace

std::string process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value != nullptr ? value : "";
}

bool is_s3(const std::string& url) { return url.starts_with(kScheme); }

Result<S3Name> parse_s3(const std::string& url) {
  if (!is_s3(url)) return Error{fmt::format("{}: expected s3://BUCKET/KEY", url)};
  const std::string rest = url.substr(kScheme.size());
  const std::size_t slash = rest.find('/');
  S3Name name{rest.substr(0, slash), slash == std::string::npos ? "" : rest.substr(slash + 1)};
  const bool plain = std::ranges::all_of(
      name.bucket, [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_'; });
  if (name.bucket.size() < 3 || name.bucket.size() > 63 || !plain)
    return Error{fmt::format(
        "{}: expected s3://BUCKET/KEY with a bucket of 3 to 63 letters, digits, dots and dashes", url)};
  while (name.key.starts_with('/')) name.key.erase(0, 1);
  while (name.key.ends_with('/')) name.key.pop_back();
  return name;
}

Result<S3Place> s3_place(const Environment& environment, const std::string& shared_file) {
  S3Place place;
  if (std::string region = first_set(environment, {"AWS_REGION", "AWS_DEFAULT_REGION"}); !region.empty())
    place.region = region;
  auto credentials = credentials_of(environment, shared_file);
  if (!credentials) return credentials.error();
  place.credentials = credentials.value();
  std::string endpoint = first_set(environment, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  place.host = fmt::format("s3.{}.amazonaws.com", place.region);
  if (endpoint.empty()) return place;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const std::size_t colon = endpoint.find("://");
  place.scheme = endpoint.substr(0, colon);
  if (colon == std::string::npos || (place.scheme != "http" && place.scheme != "https") ||
      endpoint.find('/', colon + 3) != std::string::npos || endpoint.size() == colon + 3)
    return Error{
        fmt::format("AWS_ENDPOINT_URL={}: expected http://HOST[:PORT] or https://HOST[:PORT]", endpoint)};
  place.host = endpoint.substr(colon + 3);
  place.path_style = true;
  return place;
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
