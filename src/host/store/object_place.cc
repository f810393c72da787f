// SPDX-License-Identifier: Apache-2.0
#include "host/store/object_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/result.h"

namespace tw::host {
namespace {

constexpr std::string_view kGs = "gs://", kAz = "az://", kGsHost = "storage.googleapis.com";
constexpr std::array<std::string_view, 5> kHttpSchemes = {"http://", "https://", "s3://", kGs, kAz};

std::string with_region(const std::string& store, const std::string& region) {
  return region.empty() ? store : store + ":" + region;
}

/// The host of a URL, without user and password.
std::string host_in(const std::string& url) {
  const std::size_t begin = url.find("://") + 3;
  const std::string host = url.substr(begin, url.find_first_of("/?#", begin) - begin);
  return host.substr(host.find('@') + 1);
}

void sign_as(ObjectPlace& out, const S3Place& place, const S3Name& name) {
  out.target = target_of(place, name);
  out.region = place.region;
  out.credentials = place.credentials;
  out.authorities = place.authorities;
  out.store = store_name(place);
  out.who = who_asks(place);
}

Result<ObjectPlace> place_in_gs(const std::string& object, const Environment& environment) {
  auto name = parse_s3(object, kGs);
  if (!name || name.value().key.empty()) return Error{fmt::format("{}: expected gs://BUCKET/KEY", object)};
  const auto place = gs_place(environment);
  if (!place) return Error{fmt::format("{}: {}", object, place.error().message)};
  ObjectPlace out;
  sign_as(out, place.value(), name.value());
  if (place.value().host == kGsHost) out.store = with_region("gcs", environment("GS_REGION"));
  return out;
}

/// As Azure has it in the host, and Azurite in the path.
bool is_of_account(const std::string& endpoint, const std::string& account) {
  const std::string host = host_in(endpoint);
  const std::size_t path = endpoint.find('/', endpoint.find("://") + 3);
  std::string names = "/" + host.substr(0, host.find_first_of(".:"));
  if (path != std::string::npos) names += endpoint.substr(path);
  names += '/';
  return std::ranges::any_of(std::array{account, account + "-secondary"}, [&](const std::string& name) {
    return names.find(fmt::format("/{}/", name)) != std::string::npos;
  });
}

Result<ObjectPlace> az_place(const std::string& object, const Environment& environment) {
  const std::string rest = object.substr(kAz.size());
  const std::size_t account = rest.find('/');
  const std::size_t container = account == std::string::npos ? account : rest.find('/', account + 1);
  if (account == 0 || container == std::string::npos || container + 1 == rest.size())
    return Error{fmt::format("{}: expected az://ACCOUNT/CONTAINER/BLOB", object)};
  const std::string name = rest.substr(0, account);
  std::string endpoint = environment("AZURE_STORAGE_ENDPOINT");
  const bool is_azure = endpoint.empty();
  if (is_azure) endpoint = fmt::format("https://{}.blob.core.windows.net", name);
  while (endpoint.ends_with('/')) endpoint.pop_back();
  if (!is_azure && !is_of_account(endpoint, name))
    return Error{
        fmt::format("{0}: AZURE_STORAGE_ENDPOINT={1} does not name the account {2}, expected "
                    "http://HOST/{2} or https://{2}.HOST; for a domain of your own give https:// URLs",
                    object, endpoint, name)};
  std::string token = environment("AZURE_STORAGE_SAS_TOKEN");
  if (token.starts_with('?')) token.erase(0, 1);
  ObjectPlace out;
  out.url = endpoint + percent_encoded(rest.substr(account), false) + (token.empty() ? "" : "?" + token);
  out.store = is_azure ? with_region("az", environment("AZURE_REGION")) : host_in(endpoint);
  out.who = fmt::format(
      "{}, {}", token.empty() ? "nobody: AZURE_STORAGE_SAS_TOKEN is not set" : "a SAS token", endpoint);
  return out;
}

}  // namespace

std::string store_name(const S3Place& place) {
  if (place.host == kGsHost) return "gcs";
  if (place.host.ends_with(".amazonaws.com")) return "s3:" + place.region;
  if (place.host.ends_with(".backblazeb2.com")) return "b2";
  if (place.host.ends_with(".r2.cloudflarestorage.com")) return "r2";
  return place.host;
}

bool is_gs(const std::string& url) { return url.starts_with(kGs); }

Result<S3Place> gs_place(const Environment& environment) {
  S3Place place{.root = std::string(kGs),
                .host = std::string(kGsHost),
                .path_style = true,
                .region = "auto",
                .nobody = "GS_ACCESS_KEY_ID is not set"};
  const S3Credentials keys{environment("GS_ACCESS_KEY_ID"), environment("GS_SECRET_ACCESS_KEY"), ""};
  if (keys.key_id.empty() != keys.secret.empty())
    return Error{"expected both GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY, found one"};
  if (!keys.key_id.empty()) place.credentials = keys;
  const std::string endpoint = environment("GS_ENDPOINT_URL");
  if (!endpoint.empty()) TW_TRY(put_at(place, endpoint, "GS_ENDPOINT_URL"));
  return place;
}

bool is_http_object(const std::string& object) {
  return std::ranges::any_of(kHttpSchemes,
                             [&](std::string_view scheme) { return object.starts_with(scheme); });
}

Result<ObjectPlace> object_place(const std::string& object, const Environment& environment,
                                 const AwsFiles& aws_files) {
  if (is_gs(object)) return place_in_gs(object, environment);
  if (object.starts_with(kAz)) return az_place(object, environment);
  if (!is_s3(object)) {
    const bool in_url = object.find('?') != std::string::npos;
    return ObjectPlace{.url = object,
                       .store = host_in(object),
                       .who = in_url ? "what the URL says" : "nobody: no credentials"};
  }
  TW_TRY(const auto name, parse_s3(object));
  if (name.key.empty()) return Error{fmt::format("{}: expected s3://BUCKET/KEY", object)};
  const auto place = s3_place(environment, aws_files);
  if (!place) return Error{fmt::format("{}: {}", object, place.error().message)};
  ObjectPlace out;
  sign_as(out, place.value(), name);
  return out;
}

world::HttpRequest request_for(const ObjectPlace& place, world::HttpHeaders headers, std::int64_t unix_s) {
  world::HttpRequest request{
      .url = place.url, .headers = std::move(headers), .authorities = place.authorities};
  if (place.url.empty() && place.credentials)
    request = sign(std::move(request), place.target, {place.region, unix_s}, *place.credentials);
  if (request.url.empty()) request.url = url_of(place.target);
  // Ranges are of the object, not of its compressed form. Not signed: servers in between change it.
  request.headers.emplace_back("Accept-Encoding", "identity");
  return request;
}

}  // namespace tw::host
