// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text/number.h"
#include "base/text/option.h"

namespace tw::cli {

Result<std::pair<std::uint64_t, std::uint64_t>> parse_seeds(const std::string& text) {
  const std::size_t dots = text.find("..");
  const auto first = parse_number<std::uint64_t>(text.substr(0, dots));
  const auto last =
      dots == std::string::npos ? std::nullopt : parse_number<std::uint64_t>(text.substr(dots + 2));
  const std::string expected = "expected A..B, the first seed and the last";
  if (first && dots == std::string::npos)
    return Error{fmt::format("--seeds {}: {}; for one seed --seed {}, for so many of them --seeds 1..{}",
                             text, expected, text, std::max<std::uint64_t>(1, *first))};
  if (!first || !last)
    return Error{fmt::format("--seeds {}: {}, for example --seeds 1..100", text, expected)};
  if (*first > *last)
    return Error{fmt::format("--seeds {}: {}; did you mean --seeds {}..{}?", text, expected, *last, *first)};
  if (*last - *first == UINT64_MAX)
    return Error{fmt::format("--seeds {}: {}, fewer than 2^64 of them", text, expected)};
  return std::pair(*first, *last);
}

std::string empty_word_in(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const auto& words = option->results();
    if (std::ranges::find(words, std::string()) != words.end())
      return found_nothing(option->get_name(), option->get_description());
  }
  for (const CLI::App* command : app.get_subcommands())
    if (std::string found = empty_word_in(*command); !found.empty()) return found;
  return "";
}

Result<std::pair<std::string, std::string>> parse_setting(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return Error{fmt::format(
        "--set {}: expected KEY=VALUE with a key of the run file, such as training.rounds=20", text)};
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

}  // namespace tw::cli
