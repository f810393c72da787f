// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/own_lives.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/result.h"
#include "spot/notice.h"

namespace tw::cli {
namespace {

using world::Phase;

/// The peer whose life an entry begins or ends.
std::optional<PeerId> subject(const monitor::LogEntry& entry) {
  switch (entry.event.phase()) {
    case Phase::start:
    case Phase::stop:
      return entry.writer;
    case Phase::leave:
      return entry.event.peer.value_or(entry.writer);
    case Phase::join:
    case Phase::lost:
      return entry.event.peer;
    default:
      return std::nullopt;
  }
}

double unix_s(const monitor::LogEntry& entry) { return static_cast<double>(entry.unix_nanos) / 1e9; }

/// Takes the entries of a run by time.
class Lives {
 public:
  explicit Lives(double begun_s) : begun_s_(begun_s) {}

  void take(const monitor::LogEntry& entry) {
    const Phase phase = entry.event.phase();
    const auto* notice = entry.event.as<event::Notice>();
    // A signal comes from the machine's owner.
    if (notice && notice->source != spot::name_of(spot::Source::signal)) told_.insert(entry.writer);
    const auto peer = subject(entry);
    if (!peer) return;
    const bool known = ended_.contains(*peer) || began_s_.contains(*peer);
    if (phase == Phase::start || phase == Phase::join) {
      if (began_s_.emplace(*peer, unix_s(entry)).second) told_.erase(*peer);
      return;
    }
    if (phase == Phase::lost && ended_.contains(entry.writer) && !began_s_.contains(entry.writer)) return;
    if (!known) began_s_.emplace(*peer, begun_s_);
    const bool taken = phase == Phase::lost || told_.contains(*peer);
    end(*peer, unix_s(entry), taken ? LifeEnd::taken : LifeEnd::left);
  }

  std::vector<Life> all(double now_s) && {
    while (!began_s_.empty()) end(began_s_.begin()->first, now_s, LifeEnd::none);
    return std::move(lives_);
  }

 private:
  void end(PeerId peer, double at_s, LifeEnd how) {
    const auto begin = began_s_.find(peer);
    if (begin == began_s_.end()) return;
    lives_.push_back({peer, begin->second, at_s, how});
    began_s_.erase(begin);
    ended_.insert(peer);
  }

  double begun_s_;
  std::map<PeerId, double> began_s_;  ///< of those that live
  std::set<PeerId> ended_;
  std::set<PeerId> told_;  ///< by their clouds
  std::vector<Life> lives_;
};

}  // namespace

std::vector<Life> lives_of(std::vector<monitor::LogEntry> entries) {
  if (entries.empty()) return {};
  std::stable_sort(
      entries.begin(), entries.end(),
      [](const monitor::LogEntry& a, const monitor::LogEntry& b) { return a.unix_nanos < b.unix_nanos; });
  Lives lives(unix_s(entries.front()));
  for (const monitor::LogEntry& entry : entries) lives.take(entry);
  return std::move(lives).all(unix_s(entries.back()));
}

Result<std::vector<market::Lived>> lives_in(const std::string& folder) {
  TW_TRY(auto logs, monitor::read_event_logs(folder));
  std::vector<monitor::LogEntry> entries;
  for (std::vector<monitor::LogEntry>& log : logs)
    std::move(log.begin(), log.end(), std::back_inserter(entries));
  std::vector<market::Lived> lived;
  for (const Life& life : lives_of(std::move(entries)))
    lived.push_back({life.hours(), life.end == LifeEnd::taken});
  return lived;
}

}  // namespace tw::cli
