// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "plan/model/cost.h"

namespace tw::plan {

/// Predicts each row of a table with the columns model,tbs,peers and optionally exp_id; returns a table with
/// the same order of rows. `like` gives all other inputs. An error names the row.
Result<std::string> predict_rows(const std::string& file, std::string_view text, const Workload& like,
                                 const Models& models, const Prices& prices);

}  // namespace tw::plan
