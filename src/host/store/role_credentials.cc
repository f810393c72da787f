// SPDX-License-Identifier: Apache-2.0
#include "host/store/role_credentials.h"

#include <fmt/format.h>

#include <utility>

#include "base/result.h"
#include "host/http.h"
#include "host/store/store_files.h"
#include "host/system/calendar.h"
#include "host/system/machine_signs.h"

namespace tw::host {
namespace {

constexpr std::int64_t kRenewBeforeS = 300, kAskAgainS = 60, kReadAgainS = 60;
constexpr Duration kPatience = std::chrono::seconds(1);
constexpr std::string_view kRoles = "/latest/meta-data/iam/security-credentials/";

std::string profile_of(const S3Credentials& credentials, const std::string& name) {
  return fmt::format("[{}]\naws_access_key_id={}\naws_secret_access_key={}\naws_session_token={}\n", name,
                     credentials.key_id, credentials.secret, credentials.session_token);
}

}  // namespace

std::string RoleCredentials::endpoint() const {
  if (doors_.environment("AWS_EC2_METADATA_DISABLED") == "true") return "";
  std::string named = doors_.environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  while (named.ends_with('/')) named.pop_back();
  if (!named.empty()) return named;
  return doors_.sys_vendor == "Amazon EC2" ? "http://169.254.169.254" : "";
}

Result<RoleAnswer> RoleCredentials::ask() const {
  const std::string service = endpoint();
  const auto exchange = [&](world::HttpRequest request) -> Result<std::string> {
    request.patience = kPatience;
    auto asked = doors_.exchange(request);
    if (!asked) return Error{fmt::format("{}: {}", request.url, asked.error().message)};
    world::HttpAnswer& answer = asked.value();
    if (answer.status != 200) return Error{fmt::format("{}: answered with {}", request.url, answer.status)};
    return std::move(answer.body);
  };
  const auto token = exchange({.method = "PUT",
                               .url = service + "/latest/api/token",
                               .headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "60"}}});
  if (!token) return token.error();
  const world::HttpHeaders headers{{"X-aws-ec2-metadata-token", token.value()}};
  TW_TRY(const auto roles, exchange({.url = service + std::string(kRoles), .headers = headers}));
  const std::string role = roles.substr(0, roles.find_first_of("\r\n"));
  TW_TRY(const auto answer, exchange({.url = service + std::string(kRoles) + role, .headers = headers}));
  auto read = read_role_answer(answer);
  return read ? read : Error{fmt::format("{}: {}", service, read.error().message)};
}

void RoleCredentials::renew_role(std::int64_t now) {
  asked_at_s_ = now;
  if (auto answer = ask()) {
    last_ = std::move(answer).value();
    trouble_.clear();
  } else {
    // The first one alone: what it says of time and ports differs, and there is a store for each text.
    if (trouble_.empty()) trouble_ = answer.error().message;
    not_before_s_ = now + kAskAgainS;
  }
}

AwsFiles RoleCredentials::files() {
  const std::lock_guard lock(mutex_);
  const std::int64_t now = doors_.unix_s();
  if (read_at_s_ == 0 || now >= read_at_s_ + kReadAgainS) {
    files_ = of_profile(doors_.environment, doors_.read_files());
    read_at_s_ = now;
  }
  if (endpoint().empty() || names_keys(doors_.environment, files_)) return files_;
  if (now + kRenewBeforeS >= last_.ends_unix_s && now >= not_before_s_) renew_role(now);
  if (now >= last_.ends_unix_s) {
    AwsFiles files = files_;
    if (!trouble_.empty()) files.add_trouble(trouble_);
    return files;
  }
  return {profile_of(last_.credentials, profile_name(doors_.environment)) + files_.credentials,
          files_.config};
}

void RoleCredentials::refused() {
  const std::lock_guard lock(mutex_);
  read_at_s_ = 0;
  if (doors_.unix_s() >= asked_at_s_ + kAskAgainS) last_ = {};
}

RoleCredentials& role_credentials() {
  static RoleCredentials ours(
      {.exchange = [](const world::HttpRequest& request) { return http_exchange(request); },
       .unix_s = now_unix_s,
       .environment = environment_value,
       .sys_vendor = read_machine_signs().sys_vendor,
       .read_files = [] { return read_aws_files(environment_value); }});
  return ours;
}

}  // namespace tw::host
