// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "base/text/date.h"
#include "host/store/role_credentials.h"

namespace tw::host {

Result<RoleAnswer> read_role_answer(const std::string& json) {
  const auto answer = nlohmann::json::parse(json, nullptr, false);
  const auto text = [&](const char* key) {
    const auto found = answer.is_object() ? answer.find(key) : answer.end();
    return found != answer.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const S3Credentials credentials{text("AccessKeyId"), text("SecretAccessKey"), text("Token")};
  const auto ends = parse_date(text("Expiration"));
  if (credentials.key_id.empty() || credentials.secret.empty() || !ends)
    return Error{"expected AccessKeyId, SecretAccessKey, Token and Expiration of a role"};
  return RoleAnswer{credentials, *ends};
}

}  // namespace tw::host
