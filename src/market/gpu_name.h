// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

/// GPUs have one name each in offers, jobs and profiles: that of catalog/gpus.csv, which is SkyPilot's.
namespace tw::market {

/// The name of the GPU that the user, or its driver, calls so: T4 for t4 and "Tesla T4", A100-80GB for
/// "NVIDIA A100-SXM4-80GB", 4xT4 for 4xt4. Names that may mean another GPU stay as they are, as do SkyPilot's
/// (H100-SXM, V100-32GB), by which machines are rented.
std::string gpu_name(const std::string& written);

/// The name of the GPU that its driver calls so. An unknown one: its words joined, without the vendor and the
/// form of the card, as in RTX3090 and V100-32GB.
std::string name_of_driver(const std::string& driver);

/// "4xT4": a machine with several GPUs that is one peer.
struct SeveralGpus {
  int count = 0;
  std::string gpu;
};

/// Nothing unless the name begins with a number of 2 to 64 and an x.
std::optional<SeveralGpus> several_gpus(const std::string& name);

}  // namespace tw::market
