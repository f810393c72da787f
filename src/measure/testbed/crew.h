// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codec/codec.h"
#include "launch/local/child.h"
#include "measure/bench/arguments.h"
#include "measure/bench/board.h"
#include "measure/bench/times.h"
#include "measure/testbed/testbed.h"
#include "measure/testbed/trouble.h"
#include "monitor/logs/event_log_tail.h"

namespace tw::measure {

/// What one start of all peers does. Rounds: those that warm up, those that are measured, the disturbed one
/// if there is one, and one that shows that the last mean was right. Trouble: as many rounds as it lasts, and
/// kRoundsAfter with all peers.
struct CrewOptions {
  std::vector<Host> hosts;  ///< a peer on each; ids count from 1
  std::uint64_t bytes = 0;
  codec::Codec codec = codec::Codec::fp32;
  Round warm_up = 3;
  Round rounds = 5;
  bool tls = false;
  std::optional<Disturbance> disturbance;
  std::optional<TroubleTime> trouble;
  std::vector<std::string> more;  ///< arguments of the peers
  std::string folder;             ///< empty; for event logs and what the peers print

  static constexpr Round kRoundsAfter = 6;
  static constexpr Round kEndless = 1'000'000;

  Round disturbed_round() const { return disturbance ? warm_up + rounds + 1 : 0; }

  /// With trouble nobody knows beforehand how many there will be.
  Round all_rounds() const { return trouble ? kEndless : warm_up + rounds + (disturbance ? 1 : 0) + 1; }
};

/// One start of all peers, measured.
struct CrewOutcome {
  std::vector<RoundTimes> rounds;  ///< that were not disturbed
  std::optional<RoundTimes> disturbed;
  std::vector<double> under_s, after_s;  ///< seconds of the rounds under trouble and after it
  bool identical = false;
  std::string difference;
};

/// Peers of tradewind, a process each with a whole session, which average one vector after another.
class Crew {
 public:
  /// trouble: what is to strike the machine or a link while options.trouble lasts; outlives the crew.
  Crew(CrewOptions options, Trouble* trouble) : options_(std::move(options)), trouble_(trouble) {}

  /// Errors: what a peer printed last, or who did not get on for five minutes.
  Result<CrewOutcome> run();

 private:
  struct Peer {
    launch::Child child;
    monitor::EventLogTail tail;
    bool disturbed = false;
  };

  Status start();
  Status write_token();
  Status launch(PeerId id, const std::string& join);
  Status read();
  Status ready(Round round);
  Status disturb();
  Status run_rounds();
  Status release(Round round);
  Status through_trouble();
  Status strike(bool on);
  bool all_took_part(Round round) const;
  std::map<Round, PeerLogs> logs_of_rounds(Round first, Round end) const;
  void dismiss();
  Status finish();
  Result<CrewOutcome> measure() const;
  Status until(const std::string& what, Duration every, const std::function<bool()>& holds);
  Status until_logged(const std::string& what, const std::function<bool()>& holds);
  Status look();  // is anybody gone that should not be?
  Instant begin_of(Round round) const;
  Result<std::vector<RoundTimes>> measured_rounds() const;
  std::string output_of(PeerId id) const;
  std::string token_path() const;

  CrewOptions options_;
  Trouble* trouble_;
  MappedBoard board_;
  std::map<PeerId, Peer> peers_;
  PeerLogs logs_;
  std::map<Round, Instant> released_;
  std::vector<double> under_s_, after_s_;
};

}  // namespace tw::measure
