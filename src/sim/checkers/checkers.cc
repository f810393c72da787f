// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/checkers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "sim/checkers/batch_checker.h"
#include "sim/checkers/board_checkers.h"
#include "sim/checkers/durability_checkers.h"
#include "sim/checkers/liveness_checkers.h"
#include "sim/checkers/mean_checkers.h"
#include "sim/checkers/safety_checkers.h"

namespace tw::sim {
namespace {

struct Row {
  const char* name;
  std::unique_ptr<Checker> (*make)(const Rules&, const Ledger&);
};

template <class T>
std::unique_ptr<Checker> make(const Rules& rules, const Ledger& ledger) {
  if constexpr (std::is_constructible_v<T, const Rules&, const Ledger&>)
    return std::make_unique<T>(rules, ledger);
  else if constexpr (std::is_constructible_v<T, const Rules&>)
    return std::make_unique<T>(rules);
  else if constexpr (std::is_constructible_v<T, const Ledger&>)
    return std::make_unique<T>(ledger);
  else
    return std::make_unique<T>();
}

constexpr Row kRows[] = {
    {"I1", make<SameParameters>},   {"I2", make<AllOrNone>},       {"I3", make<ExactSamples>},
    {"I3", make<ReportAddsUp>},     {"I4", make<ExactMean>},       {"I5", make<OnlySoundInput>},
    {"I6", make<KnownState>},       {"I7", make<CheckpointsLast>}, {"I8", make<OneHistory>},
    {"I9", make<CheapPreemption>},  {"I10", make<CostAddsUp>},     {"I11", make<LogReplays>},
    {"I11", make<BoardsAgree>},     {"I12", make<BoundedMemory>},  {"I14", make<ChosenBatches>},
    {"L1", make<GoesOn>},           {"L2", make<JoinersGetIn>},    {"L3", make<WaitsAreNamed>},
    {"L4", make<LeaderIsReplaced>}, {"L5", make<NobodyIsBlamed>},  {"failure", make<NobodyFails>},
};

}  // namespace

const std::vector<std::string>& checker_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Row& row : kRows)
      if (names.empty() || names.back() != row.name) names.emplace_back(row.name);
    return names;
  }();
  return kNames;
}

Result<std::vector<std::unique_ptr<Checker>>> make_checkers(const Rules& rules, const Ledger& ledger,
                                                            const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto& known = checker_names();
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return Error{fmt::format("no checker is called {}; there are {}", name, fmt::join(known, ", "))};
  }
  std::vector<std::unique_ptr<Checker>> checkers;
  for (const Row& row : kRows) {
    const bool wanted = names.empty() || std::find(names.begin(), names.end(), row.name) != names.end();
    if (wanted) checkers.push_back(row.make(rules, ledger));
  }
  return checkers;
}

}  // namespace tw::sim
