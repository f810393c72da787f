// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/system/environment.h"

/// The GPUs of this machine, by the tools of their drivers: what they are, and which a process may use.
namespace tw::launch {

/// Where the accelerators of a machine are looked for.
struct GpuSources {
  host::Environment variable;
  /// Output of a command; empty: there is no such tool, or it failed.
  std::function<std::string(const std::vector<std::string>& words)> ask;
  /// Names in a folder; none: there is no such folder.
  std::function<std::vector<std::string>(const std::string& folder)> list;
  /// Content of a file; empty: there is none.
  std::function<std::string(const std::string& path)> read;

  static GpuSources of_this_machine();
};

struct Gpu {
  std::string name;    ///< as its driver says it: "NVIDIA A100-SXM4-40GB"
  double used_mb = 0;  ///< of its memory, by all processes

  bool operator==(const Gpu&) const = default;
};

/// By nvidia-smi, else by rocm-smi. Empty where there is neither, or no GPU. Blocks as long as the tool
/// takes, which may be a second.
std::vector<Gpu> ask_gpus(const GpuSources& sources);

/// What the tools print: `nvidia-smi --query-gpu=name,memory.used --format=csv,noheader,nounits`, in MiB, and
/// `rocm-smi --showproductname --showmeminfo vram --csv`, in bytes. Lines that say something else are left
/// out.
std::vector<Gpu> gpus_of_nvidia(const std::string& text);
std::vector<Gpu> gpus_of_rocm(const std::string& text);

/// The accelerators that this process may use. A process that has one of `ids` in `variable` sees that one
/// alone.
struct VisibleGpus {
  std::string variable;  ///< "CUDA_VISIBLE_DEVICES"
  std::vector<std::string> ids;

  bool operator==(const VisibleGpus&) const = default;
};

/// The list in CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES or ZE_AFFINITY_MASK if there is one; else what the
/// tool of the driver says (nvidia-smi, rocm-smi, sycl-ls), or the device nodes: of the first of these makers
/// that has a device here. The error names all that was looked for.
Result<VisibleGpus> find_visible_gpus(const GpuSources& sources);

}  // namespace tw::launch
