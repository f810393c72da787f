// SPDX-License-Identifier: Apache-2.0
#include "measure/doctor/findings_json.h"

#include <nlohmann/json.hpp>

namespace tw::measure {

std::string to_json(const std::vector<Finding>& findings) {
  using Json = nlohmann::ordered_json;
  Json all = Json::array();
  for (const Finding& finding : findings)
    all.push_back({{"check", finding.check},
                   {"verdict", std::string(name_of(finding.verdict))},
                   {"text", finding.text},
                   {"remedy", finding.remedy}});
  const Json json = {{"hurts", any_hurts(findings)}, {"findings", std::move(all)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace tw::measure
