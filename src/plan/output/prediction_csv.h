// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "plan/model/cost.h"

namespace tw::plan {

/// Predictions for the rows of a table with the columns model,tbs,peers and perhaps exp_id: a table again, a
/// row for each, in the same order. `like` tells everything but model, TBS and peers. An error names the row.
Result<std::string> predict_rows(const std::string& file, std::string_view text, const Workload& like,
                                 const Models& models, const Prices& prices);

}  // namespace tw::plan
