// SPDX-License-Identifier: Apache-2.0
#include "host/store/s3_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <sstream>

#include "base/result.h"

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

using Section = std::map<std::string, std::string>;

/// Adds keys and values of one section of a file as ~/.aws/credentials to those that are not there yet. Those
/// that belong to a key, such as the ones below "s3 =", count as the section's own.
void add_section(const std::string& file, const std::string& section, Section& values) {
  std::istringstream lines(file);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    line = without_spaces(line);
    if (line.starts_with('#') || line.empty()) continue;
    if (line.starts_with('[')) inside = line == "[" + section + "]";
    const std::size_t sign = line.find('=');
    if (inside && sign != std::string::npos) values.try_emplace(line.substr(0, sign), line.substr(sign + 1));
  }
}

/// What both files say of the profile; the credentials first.
Section profile_in(const AwsFiles& files, const std::string& name) {
  Section values;
  const std::string section = without_spaces(name);
  add_section(files.credentials, section, values);
  add_section(files.config, section == "default" ? section : "profile" + section, values);
  return values;
}

/// Names where keys come from that is not known here; empty: nothing.
std::string unknown_source(const Section& profile) {
  for (const char* key : {"role_arn", "credential_process", "sso_session", "sso_start_url"})
    if (profile.contains(key)) return key;
  return {};
}

std::string value_of(const Section& profile, const std::string& key) {
  const auto found = profile.find(key);
  return found == profile.end() ? "" : found->second;
}

S3Credentials keys_in(const Section& profile) {
  return {value_of(profile, "aws_access_key_id"), value_of(profile, "aws_secret_access_key"),
          value_of(profile, "aws_session_token")};
}

bool are_whole(const S3Credentials& keys) { return !keys.key_id.empty() && !keys.secret.empty(); }

Result<std::optional<S3Credentials>> credentials_of(const Environment& environment, const Section& profile) {
  S3Credentials found{environment("AWS_ACCESS_KEY_ID"), environment("AWS_SECRET_ACCESS_KEY"),
                      environment("AWS_SESSION_TOKEN")};
  if (found.key_id.empty() != found.secret.empty())
    return Error{fmt::format("{} is set without {}",
                             found.key_id.empty() ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID",
                             found.key_id.empty() ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY")};
  if (!found.key_id.empty()) return std::optional(found);
  found = keys_in(profile);
  if (are_whole(found)) return std::optional(found);
  const std::string named = environment("AWS_PROFILE"), source = unknown_source(profile);
  const std::string name = profile_name(environment);
  if (!source.empty())
    return Error{fmt::format(
        "the profile {} has no keys but {}, which is not read; set the variables that \"aws configure "
        "export-credentials --profile {} --format env\" prints",
        name, source, name)};
  if (!named.empty())
    return Error{fmt::format(
        "AWS_PROFILE={}: ~/.aws/credentials and ~/.aws/config have no keys of this profile", named)};
  return std::optional<S3Credentials>{};
}

/// The place is at this endpoint.
Status put_at(S3Place& place, std::string endpoint) {
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const std::size_t colon = endpoint.find("://");
  place.scheme = endpoint.substr(0, colon);
  if (colon == std::string::npos || (place.scheme != "http" && place.scheme != "https") ||
      endpoint.find('/', colon + 3) != std::string::npos || endpoint.size() == colon + 3)
    return Error{
        fmt::format("AWS_ENDPOINT_URL={}: expected http://HOST[:PORT] or https://HOST[:PORT]", endpoint)};
  place.host = endpoint.substr(colon + 3);
  place.path_style = true;
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
  while (name.key.starts_with('/')) name.key.erase(0, 1);
  while (name.key.ends_with('/')) name.key.pop_back();
  return name;
}

std::string profile_name(const Environment& environment) {
  const std::string named = environment("AWS_PROFILE");
  return named.empty() ? "default" : named;
}

AwsFiles of_profile(const Environment& environment, const AwsFiles& files) {
  const std::string name = profile_name(environment);
  std::string text;
  for (const auto& [key, value] : profile_in(files, name)) text += fmt::format("{}={}\n", key, value);
  return {text.empty() ? text : fmt::format("[{}]\n{}", name, text), {}};
}

bool names_keys(const Environment& environment, const AwsFiles& files) {
  if (!environment("AWS_ACCESS_KEY_ID").empty()) return true;
  const Section profile = profile_in(files, profile_name(environment));
  return are_whole(keys_in(profile)) || !unknown_source(profile).empty();
}

Result<S3Place> s3_place(const Environment& environment, const AwsFiles& files) {
  const Section profile = profile_in(files, profile_name(environment));
  const auto said = [&](std::initializer_list<const char*> names, const std::string& key) {
    const std::string set = first_set(environment, names);
    return set.empty() ? value_of(profile, key) : set;
  };
  S3Place place;
  if (std::string region = said({"AWS_REGION", "AWS_DEFAULT_REGION"}, "region"); !region.empty())
    place.region = region;
  TW_TRY(auto credentials, credentials_of(environment, profile));
  place.credentials = credentials;
  place.host = fmt::format("s3.{}.amazonaws.com", place.region);
  const std::string endpoint = said({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}, "endpoint_url");
  if (!endpoint.empty()) {
    TW_TRY(put_at(place, endpoint));
  }
  const std::string style = said({"AWS_S3_ADDRESSING_STYLE"}, "addressing_style");
  if (style == "path" || style == "virtual") {
    place.path_style = style == "path";
  } else if (!style.empty() && style != "auto") {
    return Error{fmt::format("AWS_S3_ADDRESSING_STYLE={}: expected virtual, path or auto", style)};
  }
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
