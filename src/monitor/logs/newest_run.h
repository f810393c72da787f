// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "monitor/logs/event_log_json.h"

namespace tw::monitor {

/// The newest of the runs whose event logs lie in one folder: another setting makes another run (run_digest
/// of train/run/run_facts.h), and users give it the same folder. A run counts once a round of it began after
/// a start, and the newest one is that of the last such start. Entries of logs that name no run, and of a
/// start without a round, as of a peer that the others refuse, go with any run. All views of logs choose by
/// it.
class NewestRun {
 public:
  /// Takes note of the next entry of a log (its path), and gives the run that it is of; empty: its start
  /// names none. A log may be noted again.
  const std::string& note(const std::string& log, const LogEntry& entry);

  /// The digest that its starts have; empty: no run is known.
  const std::string& run() const { return newest_; }

  /// Entries of this run go with the newest one.
  bool goes_along(const std::string& run) const;

  /// This entry, which is of that run, goes with the newest one.
  bool keeps(const std::string& run, const LogEntry& entry) const;

  /// The peers of which entries go with it, a launcher left out.
  std::vector<PeerId> writers() const;

  /// "events-1.jsonl, events-2.jsonl of run 7702799b": the logs of other runs than this one, by their names.
  std::string others_than(const std::string& run) const;

  /// A sentence that names the logs of older runs; empty: there are none.
  std::string left_out() const;

 private:
  struct Run {
    std::int64_t started_unix_nanos = 0;  ///< its last start that a round followed
    std::set<std::string> logs;
  };

  /// The place that a log has been read to.
  struct Place {
    std::string run;
    std::int64_t started_unix_nanos = 0;
    bool begun = false;  ///< a round followed the last start
  };

  void begin(const std::string& log, Place& place);
  bool is_of_others(PeerId peer) const;

  std::map<std::string, Run> runs_;
  std::map<std::string, std::set<PeerId>> writers_;  ///< by run
  std::map<std::string, Place> places_;              ///< by log
  std::map<PeerId, std::set<std::string>> runs_of_;  ///< that a peer started in
  std::string newest_;
};

/// The digits of a digest that tell runs apart, as in the names of checkpoint folders.
std::string short_run(const std::string& run);

/// The runs of which the logs in this folder hold committed rounds. Unreadable lines are ignored.
NewestRun runs_in(const std::string& folder);

}  // namespace tw::monitor
