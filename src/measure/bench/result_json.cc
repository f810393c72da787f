// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "measure/bench/result.h"

namespace tw::measure {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json json_of(const TroubleTimes& trouble) {
  return {{"what", trouble.what},         {"before_s", trouble.before_s},
          {"steady_s", trouble.steady_s}, {"under_s", trouble.under_s},
          {"after_s", trouble.after_s},   {"vs_slowdown", trouble.baselines_slowdown}};
}

}  // namespace

std::string to_json(const BenchResult& result) {
  Json json = {{"topology", result.topology},
               {"peers", result.peers},
               {"bytes", result.bytes},
               {"codec", result.codec},
               {"seconds", result.tradewind.seconds},
               {"fastest_s", result.tradewind.fastest_s},
               {"slowest_s", result.tradewind.slowest_s},
               {"bound_s", or_null(result.bound_s)},
               {"bound_share", or_null(std::nullopt)},
               {"bound_cpu_s_per_gb", or_null(result.bound_cpu_s_per_gb)},
               {"bytes_sent_per_peer", result.bytes_sent_per_peer},
               {"bytes_sent", result.bytes_sent},
               {"cpu_s_per_gb", result.tradewind.cpu_s_per_gb},
               {"round_s", result.round_s},
               {"call_s", result.parts.call_s},
               {"contributions_s", result.parts.sums_s},
               {"mean_s", result.parts.mean_s},
               {"commit_s", result.parts.commit_s},
               {"kernel_s_per_gb", result.parts.kernel_s_per_gb},
               {"own_s_per_gb", result.parts.own_s_per_gb},
               {"memory_vectors", result.parts.memory_vectors},
               {"identical", result.identical},
               {"vs", Json::object()}};
  if (result.bound_s) json["bound_share"] = *result.bound_s / result.tradewind.seconds;
  for (const auto& [name, times] : result.baselines) {
    json["vs"][name] = {{"seconds", times.seconds},
                        {"fastest_s", times.fastest_s},
                        {"slowest_s", times.slowest_s},
                        {"cpu_s_per_gb", times.cpu_s_per_gb},
                        {"speedup", times.seconds / result.tradewind.seconds}};
    if (result.bound_s) json["vs"][name]["bound_share"] = *result.bound_s / times.seconds;
  }
  if (result.disturbed) {
    json["disturbed"] = result.disturbed->what;
    json["undisturbed_s"] = result.disturbed->undisturbed_s;
    json["disturbed_s"] = result.disturbed->disturbed_s;
  }
  if (result.trouble) json["trouble"] = json_of(*result.trouble);
  json["streams"] = result.streams == 0 ? Json("adaptive") : Json(result.streams);
  json["tls"] = result.tls;
  json["rounds"] = result.rounds;
  json["turns"] = result.turns;
  json["warm_up"] = result.warm_up;
  json["limited_by_box"] = result.box && !result.box->limited_by.empty();
  if (result.box) {
    json["scale"] = result.scale;
    json["box_cpu_share_max"] = result.box->cpu_share_max;
    json["box_why"] = result.box->limited_by;
  }
  json["commit"] = result.commit;
  json["date"] = result.date;
  json["machine"] = result.machine;
  json["load_before"] = result.load_before;
  return json.dump(2) + '\n';
}

}  // namespace tw::measure
