// SPDX-License-Identifier: Apache-2.0
#include "e2e/soak/history_judge.h"

#include <fmt/format.h>

#include <algorithm>

namespace tw::soak {

void HistoryJudge::see(const monitor::LogEntry& entry) {
  const world::Event& event = entry.event;
  if (event.as<event::Start>()) writers_[entry.writer] = {};
  if (const auto* restored = event.as<event::Restore>()) {
    // It takes the state of others: what it decides next need not follow from what it decided last.
    if (restored->digest.empty()) {
      writers_[entry.writer].last = 0;
      writers_[entry.writer].head.clear();
    } else {
      see_parameters(entry, restored->digest);
    }
  }
  if (const auto* log = event.as<event::Log>(); log && log->missing.value_or(0) > 0) {
    for (Round round = writers_[entry.writer].last + 1; round <= event.round; ++round)
      unlogged_.insert(round);
  }
  if (const auto* commit = event.as<event::Commit>()) see_commit(entry, *commit);
  if (const auto* applied = event.as<event::Apply>(); applied && !applied->digest.empty())
    see_parameters(entry, applied->digest);
}

void HistoryJudge::see_commit(const monitor::LogEntry& entry, const event::Commit& commit) {
  Writer& writer = writers_[entry.writer];
  const Round round = entry.event.round;
  if (round <= writer.last)
    faults_.push_back(
        fmt::format("peer {} commits round {} after round {}", entry.writer.value, round, writer.last));
  Written& record = records_[commit.digest];
  record.round = round;
  record.without_majority = commit.cause == event::Cause::minority;
  if (!writer.head.empty() && writer.last + 1 == round) record.parent = writer.head;
  record.totals.insert(static_cast<double>(commit.samples_total));
  record.carried = static_cast<double>(commit.carried);
  record.own_samples[entry.writer] = static_cast<double>(commit.samples);
  by_round_[round].insert(commit.digest);
  writer.last = round;
  writer.head = commit.digest;
  writer.not_applied[round] = commit.digest;
  newest_ = commit.digest;
}

void HistoryJudge::see_parameters(const monitor::LogEntry& entry, const std::string& digest) {
  const Round round = entry.event.round;
  auto& waiting = writers_[entry.writer].not_applied;
  const auto record = waiting.find(round);
  if (record == waiting.end()) {
    taken_.push_back({entry.writer, round, digest});
    return;
  }
  records_[record->second].parameters.insert(digest);
  waiting.erase(record);
}

std::string HistoryJudge::parent_of(const Written& record) const {
  if (!record.parent.empty()) return record.parent;
  Round round = record.round - 1;
  while (round > 0 && !by_round_.contains(round) && unlogged_.contains(round)) --round;
  const auto before = by_round_.find(round);
  const bool only = before != by_round_.end() && before->second.size() == 1;
  return only ? *before->second.begin() : "";
}

HistoryJudge::Lineage HistoryJudge::lineage() const {
  Lineage digests;
  for (std::string digest = newest_; !digest.empty(); digest = parent_of(records_.at(digest)))
    digests.push_back(digest);
  return digests;
}

HistoryJudge::Findings HistoryJudge::judge() const {
  Findings findings{.faults = faults_};
  const Lineage digests = lineage();
  if (digests.empty()) return findings;
  const Written& first = records_.at(digests.back());
  if (first.round != 1)
    findings.faults.push_back(fmt::format("no log has what led to round {}", first.round));
  findings.rounds = digests.size();
  judge_samples(digests, findings);
  judge_given_up({digests.begin(), digests.end()}, findings);
  judge_parameters(findings);
  return findings;
}

void HistoryJudge::judge_samples(const Lineage& lineage, Findings& findings) const {
  const auto full = static_cast<double>(samples_of_round_);
  for (std::size_t i = lineage.size(); i-- > 0;) {
    const Written& record = records_.at(lineage[i]);
    findings.without_majority += record.without_majority ? 1 : 0;
    if (record.totals.size() != 1)
      findings.faults.push_back(fmt::format("peers count samples differently at round {}", record.round));
    const bool begins = i + 1 == lineage.size();
    if (begins && record.round != 1) continue;
    const double before = begins ? 0 : *records_.at(lineage[i + 1]).totals.begin();
    const double samples = *record.totals.begin() - before;
    const Round rounds = begins ? 1 : record.round - records_.at(lineage[i + 1]).round;
    findings.unlogged += rounds - 1;
    if (samples < full / 2 * static_cast<double>(rounds) || samples > full * static_cast<double>(rounds))
      findings.faults.push_back(fmt::format("round {} has {} samples", record.round, samples));
    const bool next_is_known = i > 0 && records_.at(lineage[i - 1]).round == record.round + 1;
    const double left = next_is_known ? records_.at(lineage[i - 1]).carried : full - samples;
    if (rounds == 1 && samples + left != full)
      findings.faults.push_back(
          fmt::format("round {} has {} samples and leaves {}, of {}", record.round, samples, left, full));
    double own = 0;
    for (const auto& [writer, count] : record.own_samples) own += count;
    if (own > full)
      findings.faults.push_back(
          fmt::format("round {}: its peers say that they did {} samples", record.round, own));
  }
  findings.samples = static_cast<std::uint64_t>(*records_.at(lineage.front()).totals.begin());
}

void HistoryJudge::judge_given_up(const std::set<std::string>& history, Findings& findings) const {
  for (const auto& [digest, record] : records_) {
    if (history.contains(digest)) continue;
    ++findings.given_up;
    // Back to where it left the history: that was decided without a majority.
    const Written* fork = &record;
    for (std::string parent = parent_of(record); !parent.empty() && !history.contains(parent);
         parent = parent_of(*fork))
      fork = &records_.at(parent);
    if (!fork->without_majority)
      findings.faults.push_back(
          fmt::format("round {} has another record, which a majority decided and gave up", fork->round));
  }
}

void HistoryJudge::judge_parameters(Findings& findings) const {
  for (const auto& [digest, record] : records_) {
    if (record.parameters.size() > 1)
      findings.faults.push_back(fmt::format("peers have different parameters after round {}", record.round));
  }
  for (const Taken& taken : taken_) {
    const auto records = by_round_.find(taken.round);
    if (records == by_round_.end()) continue;
    std::set<std::string> known;
    for (const std::string& digest : records->second) {
      const auto& parameters = records_.at(digest).parameters;
      known.insert(parameters.begin(), parameters.end());
    }
    if (!known.empty() && !known.contains(taken.parameters))
      findings.faults.push_back(fmt::format("peer {} took other parameters than those after round {}",
                                            taken.writer.value, taken.round));
  }
}

}  // namespace tw::soak
