// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "base/text/date.h"
#include "market/catalog.h"

namespace tw::market {

std::string to_json(const std::vector<Offer>& offers, std::int64_t now_unix_s) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  const auto dated = [](const Offer& o) { return o.as_of_unix_s > 0; };
  for (const Offer& o : offers)
    rows.push_back(
        {{"provider", o.provider},
         {"region", o.region},
         {"zone", o.zone},
         {"failure_domain", o.failure_domain},
         {"vm_type", o.vm_type},
         {"gpu", o.gpu},
         {"gpus", o.gpus},
         {"gpu_memory_gib", o.gpu_memory_gib},
         {"memory_gib", o.memory_gib},
         {"vcpus", o.vcpus},
         {"network_gbps", o.network_gbps},
         {"purchase", to_string(o.purchase)},
         {"usd_per_h", o.usd_per_h},
         {"source", o.source},
         {"as_of", dated(o) ? Json(date_text(o.as_of_unix_s)) : Json()},
         {"age_h", dated(o) ? Json(static_cast<double>(now_unix_s - o.as_of_unix_s) / 3600) : Json()},
         {"old", is_old(o, now_unix_s)},
         {"start_up_s", o.start_up_s},
         {"notice_s", o.notice_s},
         {"taken_in_30_days", o.taken_in_30_days},
         {"quota_class", o.quota_class}});
  return rows.dump(2) + "\n";
}

}  // namespace tw::market
