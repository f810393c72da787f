// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "data/dataset.h"
#include "train/run.h"

namespace tw::train {

struct RunData {
  std::unique_ptr<data::Dataset> training;
  std::unique_ptr<data::Dataset> evaluation;  ///< nullptr: the options name none
  std::string print{};                        ///< what tells the training data from others; empty: not known
};

/// Reads the files that the options name.
Result<RunData> open_run_data(const DataOptions& options);

}  // namespace tw::train
