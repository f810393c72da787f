// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "measure/bench/join.h"

namespace tw::measure {

std::string to_json(const JoinResult& result) {
  const JoinTimes& times = result.times;
  const nlohmann::ordered_json json = {{"bytes", result.options.bytes},
                                       {"peers", result.options.peers},
                                       {"work_ms", result.options.work / std::chrono::milliseconds(1)},
                                       {"turns", result.options.turns},
                                       {"start_s", times.start_s},
                                       {"link_s", times.link_s},
                                       {"offer_s", times.offer_s},
                                       {"transfer_s", times.transfer_s},
                                       {"place_s", times.place_s},
                                       {"contribute_s", times.contribute_s},
                                       {"state_s", result.state_s},
                                       {"bound_s", result.bound_s},
                                       {"round_s", result.round_s}};
  return json.dump(2) + '\n';
}

}  // namespace tw::measure
