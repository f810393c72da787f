// SPDX-License-Identifier: Apache-2.0
#include "launch/local/gpus.h"

#include <algorithm>
#include <optional>
#include <sstream>

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

std::string said_by(std::vector<std::string> words) {
  const auto done = run_command({.words = std::move(words)});
  return done && done.value().exit_code == 0 ? done.value().text : "";
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

std::vector<Gpu> ask_gpus() {
  std::vector<Gpu> gpus = gpus_of_nvidia(
      said_by({"nvidia-smi", "--query-gpu=name,memory.used", "--format=csv,noheader,nounits"}));
  if (!gpus.empty()) return gpus;
  return gpus_of_rocm(said_by({"rocm-smi", "--showproductname", "--showmeminfo", "vram", "--csv"}));
}

}  // namespace tw::launch
