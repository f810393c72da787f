// SPDX-License-Identifier: Apache-2.0
#include "e2e/soak/history_judge.h"

#include <fmt/format.h>

#include "monitor/report.h"

namespace tw::soak {
namespace {

/// More say the same.
constexpr std::size_t kMostFaults = 50;

}  // namespace

void HistoryJudge::see(const LogEntry& entry) {
  Writer& writer = writers_[entry.writer];
  const Event& event = entry.event;
  if (event.phase == Phase::start) writer = {};
  const bool takes_state = event.phase == Phase::restore && event.digest.empty();
  if (takes_state) writer.alone = false;
  if (event.phase == Phase::commit) see_commit(entry);
  if (event.phase == Phase::apply || event.phase == Phase::restore) see_parameters(entry);
}

void HistoryJudge::see_commit(const LogEntry& entry) {
  Writer& writer = writers_[entry.writer];
  const Event& event = entry.event;
  writer.alone = writer.alone || !event.why.empty();
  if (writer.alone) {
    writer.without.insert(event.round);
    ++given_up_;
    return;
  }
  if (event.round <= writer.last)
    find_fault(
        fmt::format("peer {} commits round {} after round {}", entry.writer.value, event.round, writer.last));
  writer.last = event.round;
  Facts& facts = rounds_[event.round];
  const double total = number_in(event, "samples_total").value_or(-1);
  if (facts.records.insert(event.digest).second && facts.records.size() > 1)
    find_fault(fmt::format("peer {} has another record of round {}", entry.writer.value, event.round));
  if (facts.totals.insert(total).second && facts.totals.size() > 1)
    find_fault(fmt::format("peer {} counts {} samples until round {}, others do not", entry.writer.value,
                           total, event.round));
  facts.own_samples[entry.writer] = number_in(event, "samples").value_or(0);
  facts.carried = number_in(event, "carried").value_or(-1);
  facts.members = number_in(event, "members").value_or(0);
}

void HistoryJudge::see_parameters(const LogEntry& entry) {
  Writer& writer = writers_[entry.writer];
  const Event& event = entry.event;
  if (event.digest.empty() || writer.without.erase(event.round) > 0 || writer.alone) return;
  auto& digests = rounds_[event.round].parameters;
  if (digests.insert(event.digest).second && digests.size() > 1)
    find_fault(fmt::format("peer {} has other parameters after round {}", entry.writer.value, event.round));
}

void HistoryJudge::judge_sums() {
  const auto full = static_cast<double>(samples_of_round_);
  double before = 0;
  Round expected = 1;
  for (const auto& [round, facts] : rounds_) {
    if (facts.totals.empty()) continue;  // somebody had its state, and whoever decided it was killed
    if (round != expected) find_fault(fmt::format("rounds {} to {} are in no log", expected, round - 1));
    const double samples = *facts.totals.begin() - before;
    const auto next = rounds_.find(round + 1);
    const double carried = next == rounds_.end() || next->second.totals.empty() ? -1 : next->second.carried;
    if (round == expected && (samples < full / 2 || samples > full))
      find_fault(fmt::format("round {} has {} samples", round, samples));
    if (round == expected && carried >= 0 && samples + carried != full)
      find_fault(fmt::format("round {} has {} samples and leaves {}, of {}", round, samples, carried, full));
    double own = 0;
    for (const auto& [writer, count] : facts.own_samples) own += count;
    if (own > full) find_fault(fmt::format("round {}: its peers say that they did {} samples", round, own));
    before = *facts.totals.begin();
    expected = round + 1;
  }
}

std::uint64_t HistoryJudge::samples() const {
  for (auto round = rounds_.rbegin(); round != rounds_.rend(); ++round) {
    if (!round->second.totals.empty()) return static_cast<std::uint64_t>(*round->second.totals.begin());
  }
  return 0;
}

std::size_t HistoryJudge::members() const {
  for (auto round = rounds_.rbegin(); round != rounds_.rend(); ++round) {
    if (!round->second.totals.empty()) return static_cast<std::size_t>(round->second.members);
  }
  return 0;
}

void HistoryJudge::find_fault(std::string what) {
  if (faults_.size() < kMostFaults) faults_.push_back(std::move(what));
}

}  // namespace tw::soak
