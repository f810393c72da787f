// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "plan/model/cost.h"

namespace tw::plan {

/// One object; `ranges` has the same names with [low, high].
std::string to_json(const Prediction& prediction, const Cost& cost);

/// Data of a prediction's page (web/predict_page.js), as the inside of an object: model, peers, prediction
/// (as above), and `answers`: predictions for every position of its sliders, with dollars at these prices.
std::string page_fields(const Workload& workload, const std::vector<PeerGroup>& peers,
                        const Prediction& prediction, const Cost& cost, const Prices& prices);

}  // namespace tw::plan
