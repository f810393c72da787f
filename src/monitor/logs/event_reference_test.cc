// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "world/events.h"

namespace tw::monitor {
namespace {

struct Row {
  std::vector<std::string> phases;  ///< that tell the fact
  std::string name, meaning;
};

/// The facts of all events, in the order of the log; one that several phases tell, in the first of them.
std::vector<Row> facts() {
  std::vector<Row> rows;
  for (std::size_t phase = 0; phase < world::kPhaseNames.size(); ++phase) {
    const std::string quoted = fmt::format("`{}`", world::kPhaseNames.at(phase));
    const auto note = [&](std::string_view name, const auto&, std::string_view meaning) {
      const auto same = [&](const Row& row) { return row.name == name && row.meaning == meaning; };
      auto row = std::ranges::find_if(rows, same);
      if (row == rows.end()) row = rows.insert(rows.end(), {{}, std::string(name), std::string(meaning)});
      row->phases.push_back(quoted);
    };
    std::visit([&](const auto& fact) { fact.fields(fact, note); },
               world::fact_of(static_cast<world::Phase>(phase)));
  }
  return rows;
}

std::string event_reference() {
  std::string text = "| fact | of | meaning |\n|---|---|---|\n";
  for (const Row& row : facts())
    text += fmt::format("| `{}` | {} | {} |\n", row.name, fmt::join(row.phases, ", "), row.meaning);
  return text;
}

std::string page() {
  std::ifstream file(std::string(TW_SOURCE_DIR) + "/docs/events.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(EventReference, is_the_end_of_the_page) {
  EXPECT_TRUE(page().ends_with(event_reference())) << "docs/events.md should end with:\n"
                                                   << event_reference();
}

TEST(EventReference, has_a_row_for_every_phase_that_a_peer_writes) {
  const std::string text = page().substr(0, page().find("## Facts"));
  for (const std::string_view phase : world::kPhaseNames)
    EXPECT_TRUE(phase == "kill" || text.find(fmt::format("\n| `{}`", phase)) != std::string::npos ||
                text.find(fmt::format(", `{}`", phase)) != std::string::npos)
        << phase;
}

}  // namespace
}  // namespace tw::monitor
