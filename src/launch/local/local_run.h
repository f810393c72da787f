// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "host/loop.h"
#include "launch/local/child.h"
#include "launch/local/script.h"
#include "monitor/logs/event_log_json.h"
#include "monitor/terminal/progress_text.h"

namespace tw::launch {

struct LocalOptions {
  std::string run_file;
  std::string out;
  std::uint64_t peers = 1;
  std::uint64_t threads = 1;
  std::string log_limit = "256MiB";     ///< of each peer
  std::string usd_per_h{}, site{};      ///< of each peer; empty: not known
  std::string token{};                  ///< file that lets the peers in; empty: --insecure
  std::vector<std::string> settings{};  ///< KEY=VALUE
  std::vector<Kill> kills{};
  std::vector<Round> joins{};
};

struct LocalOutcome {
  std::vector<std::string> failures;
  bool interrupted = false;  ///< SIGINT came
  bool goes_on = false;      ///< peers left on a notice or by SIGTERM, and none completed the run
};

/// The processes of `tw local`: starts them, follows their event logs, follows the script, and waits for
/// their end. None of them outlives this object.
class LocalRun {
 public:
  using Say = std::function<void(const std::string& line)>;

  LocalRun(host::Loop& loop, LocalOptions options, Say say);

  LocalOutcome run();

 private:
  struct Peer {
    Child child;
    monitor::EventLogTail tail;
    std::string address;  ///< empty until it listens
    bool took_part = false;
    bool killed = false;
    bool ended = false;
  };

  void launch(Round round);
  void look();
  void give_up_for_want_of_space();
  void follow(Peer& peer);
  void take(const monitor::LogEntry& entry);
  void act(const Script::Due& due);
  void kill_peer(PeerId id, Round round);
  void reap(PeerId id, Peer& peer);
  void end_late_comers();
  void on_signal(int signal);
  bool everybody_ended() const;
  std::vector<std::string> live_addresses() const;
  std::string output_of(PeerId id) const;
  void log(world::Phase phase, PeerId about, Round round);

  host::Loop& loop_;
  LocalOptions options_;
  Say say_;
  Script script_;
  monitor::ProgressText progress_;
  std::optional<monitor::JsonEventLog> log_;
  std::map<PeerId, Peer> peers_;
  std::uint64_t last_id_ = 0;
  bool somebody_finished_ = false;  ///< the run is complete
  bool all_launched_ = false;       ///< the first peer's address is known, and the others are started
  int signals_ = 0;
  Instant signalled_at_{};
  LocalOutcome outcome_;
};

}  // namespace tw::launch
