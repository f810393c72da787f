// SPDX-License-Identifier: Apache-2.0
#include "plan/model/gpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/result.h"
#include "base/text/csv.h"
#include "base/text/text.h"
#include "market/built_in.h"

namespace tw::plan {

const Gpus& Gpus::built_in() {
  static const Gpus gpus = read_gpus("gpus.csv", market::built_in_file("gpus.csv")).value();
  return gpus;
}

Result<Gpu> Gpus::find(const std::string& name) const {
  if (const auto found = gpus_.find(name); found != gpus_.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [gpu, figures] : gpus_) known.push_back(gpu);
  return Error{
      fmt::format("{0}: unknown GPU; known are {1}; measure your model on it: tw profile --name {0} -o "
                  "model.yaml -- COMMAND",
                  name, fmt::join(known, ", "))};
}

std::string Gpus::spelled(const std::string& name) const {
  for (const auto& [gpu, figures] : gpus_)
    if (lower(gpu) == lower(name)) return gpu;
  return name;
}

namespace {

/// Words of the vendor, and of another GPU than the one without them.
constexpr std::array<std::string_view, 7> kVendors{"nvidia", "tesla",    "quadro", "geforce",
                                                   "amd",    "instinct", "card"};
constexpr std::array<std::string_view, 5> kOthers{"ada", "laptop", "max", "mobile", "blackwell"};

std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (c == ' ' || c == '-') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  std::erase_if(words, [](const std::string& word) {
    return word.empty() || std::ranges::find(kVendors, lower(word)) != kVendors.end();
  });
  return words;
}

/// As one word, or as two: "RTX 8000" is RTX8000.
bool has_word(const std::vector<std::string>& words, const std::string& wanted) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (lower(words[i]) == lower(wanted)) return true;
    if (i + 1 < words.size() && lower(words[i] + words[i + 1]) == lower(wanted)) return true;
  }
  return false;
}

}  // namespace

std::string Gpus::named(const std::string& driver_name) const {
  const std::vector<std::string> words = words_of(driver_name);
  const bool other = std::ranges::any_of(words, [](const std::string& word) {
    return std::ranges::find(kOthers, lower(word)) != kOthers.end();
  });
  std::string best;
  for (const auto& [gpu, figures] : gpus_) {
    const std::vector<std::string> parts = words_of(gpu);
    const bool fits =
        !other && std::ranges::all_of(parts, [&](const std::string& part) { return has_word(words, part); });
    if (fits && gpu.size() > best.size()) best = gpu;
  }
  return best.empty() ? fmt::format("{}", fmt::join(words, "-")) : best;
}

Result<Gpus> read_gpus(const std::string& file, std::string_view text) {
  TW_TRY(const auto table, CsvTable::parse(file, text, {"gpu", "tensor_tflops", "memory_gb_per_s"}));
  Gpus gpus;
  for (std::size_t i = 0; i < table.size(); ++i) {
    CsvRow row = table.row(i);
    gpus.gpus_[row.word("gpu")] = {row.number("tensor_tflops", {.least = 1e-3}),
                                   row.number("memory_gb_per_s", {.least = 1e-3}),
                                   row.number_or("memory_gib", 0, {.least = 0})};
    if (!row.status()) return row.status().error();
  }
  return gpus;
}

}  // namespace tw::plan
