// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

/// The GPUs of this machine, by the tools of their drivers.
namespace tw::launch {

struct Gpu {
  std::string name;    ///< as its driver says it: "NVIDIA A100-SXM4-40GB"
  double used_mb = 0;  ///< of its memory, by all processes

  bool operator==(const Gpu&) const = default;
};

/// By nvidia-smi, else by rocm-smi. Empty where there is neither, or no GPU. Blocks as long as the tool
/// takes, which may be a second.
std::vector<Gpu> ask_gpus();

/// What the tools print: `nvidia-smi --query-gpu=name,memory.used --format=csv,noheader,nounits`, in MiB, and
/// `rocm-smi --showproductname --showmeminfo vram --csv`, in bytes. Lines that say something else are left
/// out.
std::vector<Gpu> gpus_of_nvidia(const std::string& text);
std::vector<Gpu> gpus_of_rocm(const std::string& text);

}  // namespace tw::launch
