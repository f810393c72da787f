// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/own_lives.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/result.h"
#include "monitor/logs/event_log_tail.h"
#include "monitor/logs/log_file.h"
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

double unix_s(std::int64_t unix_nanos) { return static_cast<double>(unix_nanos) / 1e9; }

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
      if (began_s_.emplace(*peer, unix_s(entry.unix_nanos)).second) told_.erase(*peer);
      return;
    }
    if (phase == Phase::lost && ended_.contains(entry.writer) && !began_s_.contains(entry.writer)) return;
    if (!known) began_s_.emplace(*peer, begun_s_);
    const bool taken = phase == Phase::lost || told_.contains(*peer);
    end(*peer, unix_s(entry.unix_nanos), taken ? LifeEnd::taken : LifeEnd::left);
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

void LivesInLogs::take(const monitor::LogEntry& entry) {
  begun_unix_nanos_ = std::min(begun_unix_nanos_.value_or(entry.unix_nanos), entry.unix_nanos);
  ended_unix_nanos_ = std::max(ended_unix_nanos_, entry.unix_nanos);
  if (kWanted.test(static_cast<std::size_t>(entry.event.phase()))) entries_.push_back(entry);
}

std::vector<Life> LivesInLogs::lives() && {
  if (!begun_unix_nanos_) return {};
  std::ranges::stable_sort(entries_, {}, &monitor::LogEntry::unix_nanos);
  Lives lives(unix_s(*begun_unix_nanos_));
  for (const monitor::LogEntry& entry : entries_) lives.take(entry);
  return std::move(lives).all(unix_s(ended_unix_nanos_));
}

Result<std::vector<market::Lived>> lives_in(const std::string& folder) {
  TW_TRY(const auto logs, monitor::find_event_logs(folder));
  LivesInLogs found;
  for (const std::string& log : logs)
    TW_TRY(monitor::EventLogTail(log).each_new(LivesInLogs::kWanted,
                                               [&](const monitor::LogEntry& entry) { found.take(entry); }));
  std::vector<market::Lived> lived;
  for (const Life& life : std::move(found).lives())
    lived.push_back({life.hours(), life.end == LifeEnd::taken});
  return lived;
}

}  // namespace tw::cli
