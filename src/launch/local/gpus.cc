// SPDX-License-Identifier: Apache-2.0
#include "launch/local/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/text/number.h"
#include "base/text/text.h"
#include "launch/command_run.h"

namespace tw::launch {
namespace {

constexpr double kMiB = 1048576, kMB = 1e6;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');) cells.emplace_back(trimmed(cell));
  return cells;
}

/// The column whose title has these words; rocm-smi spells them differently from version to version.
std::optional<std::size_t> column_of(const std::vector<std::string>& titles, const std::string& words) {
  for (std::size_t i = 0; i < titles.size(); ++i)
    if (lower(titles[i]).find(words) != std::string::npos) return i;
  return std::nullopt;
}

}  // namespace

std::vector<Gpu> gpus_of_nvidia(const std::string& text) {
  std::vector<Gpu> gpus;
  for (const std::string& line : lines_of(text)) {
    const std::vector<std::string> cells = cells_of(line);
    const auto used = cells.size() == 2 ? parse_number<double>(cells[1]) : std::nullopt;
    if (used) gpus.push_back({cells[0], *used * kMiB / kMB});
  }
  return gpus;
}

std::vector<Gpu> gpus_of_rocm(const std::string& text) {
  std::vector<Gpu> gpus;
  std::optional<std::size_t> name, memory;
  for (const std::string& line : lines_of(text)) {
    const std::vector<std::string> cells = cells_of(line);
    if (!name || !memory) {
      name = column_of(cells, "card series");
      memory = column_of(cells, "used memory");
      continue;
    }
    if (cells.size() <= std::max(*name, *memory)) continue;
    if (const auto used = parse_number<double>(cells[*memory])) gpus.push_back({cells[*name], *used / kMB});
  }
  return gpus;
}

std::vector<Gpu> ask_gpus(const GpuSources& sources) {
  std::vector<Gpu> gpus = gpus_of_nvidia(
      sources.ask({"nvidia-smi", "--query-gpu=name,memory.used", "--format=csv,noheader,nounits"}));
  if (!gpus.empty()) return gpus;
  return gpus_of_rocm(sources.ask({"rocm-smi", "--showproductname", "--showmeminfo", "vram", "--csv"}));
}

namespace {

using Ids = std::vector<std::string>;

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// "0" to "count - 1".
Ids numbered(std::size_t count) {
  Ids ids;
  for (std::size_t i = 0; i < count; ++i) ids.push_back(std::to_string(i));
  return ids;
}

/// "GPU 0: NVIDIA A100 (UUID: GPU-...)"; a GPU in slices is followed by a line for each, which has to be
/// named by its UUID: "  MIG 1g.10gb Device 0: (UUID: MIG-...)".
Ids in_nvidia_list(const std::string& text) {
  Ids whole, slices;
  std::set<std::string> sliced;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string_view rest = trimmed(line);
    if (rest.starts_with("GPU ")) {
      const std::string_view id = rest.substr(4, rest.find(':') - 4);
      if (is_number(id)) whole.emplace_back(id);
    }
    const std::size_t uuid = rest.find("MIG-");
    if (!rest.starts_with("MIG ") || uuid == std::string_view::npos || whole.empty()) continue;
    slices.emplace_back(rest.substr(uuid, rest.find(')', uuid) - uuid));
    sliced.insert(whole.back());
  }
  std::erase_if(whole, [&](const std::string& id) { return sliced.contains(id); });
  whole.insert(whole.end(), slices.begin(), slices.end());
  return whole;
}

/// "GPU[0]          : Device Name: ...", several lines for each.
Ids in_rocm_list(const std::string& text) {
  std::set<std::size_t> found;
  for (std::size_t at = text.find("GPU["); at != std::string::npos; at = text.find("GPU[", at + 4)) {
    const std::string id = text.substr(at + 4, text.find(']', at) - at - 4);
    if (is_number(id)) found.insert(std::stoul(id));
  }
  return numbered(found.size());
}

/// "[level_zero:gpu][level_zero:0] Intel(R) ..." or "[ext_oneapi_level_zero:gpu:0] ..."
Ids in_sycl_list(const std::string& text) {
  std::size_t count = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find("level_zero:gpu") != std::string::npos) ++count;
  return numbered(count);
}

/// /dev/nvidia0, /dev/nvidia1 ...
Ids nvidia_nodes(const GpuSources& sources) {
  Ids ids;
  for (const std::string& name : sources.list("/dev"))
    if (name.starts_with("nvidia") && is_number(std::string_view(name).substr(6)))
      ids.push_back(name.substr(6));
  std::ranges::sort(ids, {}, [](const std::string& id) { return std::stoul(id); });
  return ids;
}

/// /dev/dri/renderD128 ... of the maker with this PCI number.
Ids render_nodes(const GpuSources& sources, std::string_view maker) {
  std::size_t count = 0;
  for (const std::string& name : sources.list("/dev/dri")) {
    if (!name.starts_with("renderD")) continue;
    if (sources.read("/sys/class/drm/" + name + "/device/vendor").starts_with(maker)) ++count;
  }
  return numbered(count);
}

Ids amd_nodes(const GpuSources& sources) { return render_nodes(sources, "0x1002"); }

Ids intel_nodes(const GpuSources& sources) { return render_nodes(sources, "0x8086"); }

struct Maker {
  const char* variable;
  std::vector<std::string> tool;
  Ids (*in_list)(const std::string& text);
  Ids (*nodes)(const GpuSources& sources);
};

std::array<Maker, 3> makers() {
  return {{{"CUDA_VISIBLE_DEVICES", {"nvidia-smi", "-L"}, in_nvidia_list, nvidia_nodes},
           {"HIP_VISIBLE_DEVICES", {"rocm-smi", "--showid"}, in_rocm_list, amd_nodes},
           {"ZE_AFFINITY_MASK", {"sycl-ls"}, in_sycl_list, intel_nodes}}};
}

/// "2,5"; CUDA ignores what follows a number below 0.
Ids in_variable(const std::string& text) {
  Ids ids;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::string_view id = trimmed(part);
    if (id.starts_with('-')) break;
    if (!id.empty()) ids.emplace_back(id);
  }
  return ids;
}

}  // namespace

Result<VisibleGpus> find_visible_gpus(const GpuSources& sources) {
  for (const Maker& maker : makers()) {
    const std::string given = sources.variable(maker.variable);
    if (given.empty()) continue;
    Ids ids = in_variable(given);
    if (!ids.empty()) return VisibleGpus{maker.variable, std::move(ids)};
    return Error{fmt::format("--peers gpus: {}={} names no device", maker.variable, given)};
  }
  for (const Maker& maker : makers()) {
    Ids ids = maker.in_list(sources.ask(maker.tool));
    if (ids.empty()) ids = maker.nodes(sources);
    if (!ids.empty()) return VisibleGpus{maker.variable, std::move(ids)};
  }
  return Error{
      "--peers gpus: no GPU was found on this machine, neither by nvidia-smi, rocm-smi and sycl-ls nor as "
      "/dev/nvidia0 or /dev/dri/renderD128 of AMD or Intel; install the driver, or give a number: --peers 2"};
}

GpuSources GpuSources::of_this_machine() {
  return {.variable = host::environment_value,
          .ask = [](const std::vector<std::string>& words) -> std::string {
            const auto done = run_command({.words = words});
            return done && done.value().exit_code == 0 ? done.value().text : "";
          },
          .list =
              [](const std::string& folder) {
                std::vector<std::string> names;
                std::error_code error;
                for (const auto& entry : std::filesystem::directory_iterator(folder, error))
                  names.push_back(entry.path().filename().string());
                return names;
              },
          .read = [](const std::string& path) -> std::string {
            std::ifstream file(path);
            return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
          }};
}

}  // namespace tw::launch
