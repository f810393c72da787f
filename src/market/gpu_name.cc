// SPDX-License-Identifier: Apache-2.0
#include "market/gpu_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "base/text/number.h"
#include "base/text/text.h"
#include "market/gpu.h"

namespace tw::market {
namespace {

using GpuWords = std::vector<std::string>;

struct KnownGpu {
  const Gpu& gpu;
  GpuWords words;
};

constexpr std::string_view kMakers[] = {"nvidia", "tesla", "quadro", "geforce", "amd", "instinct"};
/// A number after these is part of the word.
constexpr std::string_view kSeries[] = {"rtx", "gtx"};
/// How the card is built, not which GPU it is; also SXM2 to SXM5.
constexpr std::string_view kForms[] = {"sxm", "pcie", "hbm2", "hbm2e", "hbm3", "hbm3e"};
/// Drivers add these; catalogs do not: RTX6000-Ada.
constexpr std::string_view kAdded[] = {"card", "generation"};

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

template <std::size_t N>
bool is_one_of_words(const std::string_view (&words)[N], const std::string& word) {
  return std::ranges::find(words, lower(word)) != std::end(words);
}

/// Catalogs call a card SXM, drivers SXM4.
bool is_numbered_sxm(const std::string& word) {
  return word.size() == 4 && lower(word).starts_with("sxm") && is_digit(word.back());
}

bool is_form(const std::string& word) { return is_one_of_words(kForms, word) || is_numbered_sxm(word); }

GpuWords split_words(const std::string& name) {
  GpuWords words(1);
  for (const char c : name) {
    if (c == ' ' || c == '-') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  std::erase_if(words, [](const std::string& word) { return word.empty(); });
  return words;
}

/// Without the maker. "RTX 8000" is one word, RTX8000.
GpuWords words_of_gpu(const std::string& name) {
  GpuWords words;
  for (const std::string& word : split_words(name)) {
    if (is_one_of_words(kMakers, word)) continue;
    const bool goes_on = !words.empty() && is_digit(word.front()) && is_one_of_words(kSeries, words.back());
    if (goes_on) {
      words.back() += word;
    } else {
      words.push_back(word);
    }
  }
  return words;
}

const std::vector<KnownGpu>& known_gpus() {
  static const std::vector<KnownGpu> gpus = [] {
    std::vector<KnownGpu> known;
    for (const Gpu& gpu : built_in_gpus()) known.push_back({gpu, words_of_gpu(gpu.name)});
    return known;
  }();
  return gpus;
}

/// "80GB" of an A100-80GB: there is a V100 of 16 GB and one of 32.
bool is_its_size(const std::string& word, double memory_gib) {
  const std::string text = lower(word);
  if (!text.ends_with("gb")) return false;
  return parse_number<double>(std::string_view(text).substr(0, text.size() - 2)) == memory_gib;
}

/// Whether the words name this GPU, and none of them may make it another one.
bool name_the_gpu(GpuWords words, const KnownGpu& known) {
  for (const std::string& wanted : known.words) {
    const auto found =
        std::ranges::find_if(words, [&](const std::string& word) { return same_word(word, wanted); });
    if (found == words.end()) return false;
    words.erase(found);
  }
  return std::ranges::all_of(words, [&](const std::string& word) {
    return is_form(word) || lower(word) == "rtx" || is_its_size(word, known.gpu.memory_gib);
  });
}

const Gpu* gpu_of(const GpuWords& words) {
  const auto found =
      std::ranges::find_if(known_gpus(), [&](const KnownGpu& known) { return name_the_gpu(words, known); });
  return found == known_gpus().end() ? nullptr : &found->gpu;
}

/// Catalogs have neither the maker nor spaces in a name. A name of the user's own may have one of them, as in
/// amd-box and "my box".
bool has_signs_of_driver(const std::string& name) {
  return name.find(' ') != std::string::npos ||
         std::ranges::any_of(split_words(name),
                             [](const std::string& word) { return is_one_of_words(kMakers, word); });
}

/// Drivers begin with the maker or series: "NVIDIA A10", "RTX 3090".
bool is_of_driver(const std::string& name) {
  const std::size_t space = name.find(' ');
  const std::string first = name.substr(0, space);
  return (space != std::string::npos &&
          (is_one_of_words(kMakers, first) || is_one_of_words(kSeries, first))) ||
         std::ranges::any_of(split_words(name), is_numbered_sxm);
}

}  // namespace

std::string gpu_name(const std::string& written) {
  for (const Gpu& gpu : built_in_gpus())
    if (same_word(gpu.name, written)) return gpu.name;
  const auto digits = static_cast<std::size_t>(std::ranges::find_if_not(written, is_digit) - written.begin());
  const bool several = digits > 0 && digits + 1 < written.size() && lower_letter(written[digits]) == 'x';
  if (several) return written.substr(0, digits) + "x" + gpu_name(written.substr(digits + 1));
  if (is_of_driver(written)) return name_of_driver(written);
  const Gpu* known = has_signs_of_driver(written) ? gpu_of(words_of_gpu(written)) : nullptr;
  return known == nullptr ? written : known->name;
}

std::string name_of_driver(const std::string& driver) {
  GpuWords words = words_of_gpu(driver);
  std::erase_if(words, [](const std::string& word) { return is_one_of_words(kAdded, word); });
  if (const Gpu* known = gpu_of(words)) return known->name;
  std::erase_if(words, is_form);
  return words.empty() ? driver : fmt::format("{}", fmt::join(words, "-"));
}

std::optional<SeveralGpus> several_gpus(const std::string& name) {
  constexpr int kMostGpus = 64;
  const std::size_t x = name.find('x');
  if (x == std::string::npos || x + 1 == name.size()) return std::nullopt;
  const auto count = parse_number<int>(std::string_view(name).substr(0, x));
  if (!count || *count < 2 || *count > kMostGpus) return std::nullopt;
  return SeveralGpus{*count, name.substr(x + 1)};
}

}  // namespace tw::market
