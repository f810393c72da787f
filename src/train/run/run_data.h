// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "data/dataset.h"
#include "train/run/run.h"
#include "world/store.h"

namespace tw::train {

struct RunData {
  std::unique_ptr<data::Dataset> training;
  std::unique_ptr<data::Dataset> evaluation;  ///< nullptr: the options name none
  std::string print{};                        ///< identifies the training data; empty: not known
};

/// Doors for data that is fetched during the run. The store outlives the data.
struct DataDoors {
  world::Store* store = nullptr;    ///< null: only files that are read at once
  std::function<Duration()> now{};  ///< any thread; empty: waits for data are not measured
  int decoders = 1;                 ///< threads
};

/// Reads the files that the options name; of shards the index.
Result<RunData> open_run_data(const DataOptions& options, const DataDoors& doors = {});

}  // namespace tw::train
