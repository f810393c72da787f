// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "host/store/stores.h"
#include "train/run/run_data.h"

namespace tw::cli {

/// Doors for the data of a run. threads: of computing; two of them are reserved for it and the network.
train::DataDoors data_doors(host::Stores& stores, const train::RunOptions& run, int threads);

/// For Stores: warns of a store that does not answer, at most once in 10 s. Any thread.
std::function<void(const std::string&)> warn_of_stores();

}  // namespace tw::cli
