// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "monitor/logs/event_log_json.h"

/// The logs of a run, sorted by what they are about: the middle step from lines to a summary.
namespace tw::monitor {

struct RoundFacts {
  double loss_sum = 0;  ///< over loss_samples
  std::uint64_t loss_samples = 0;
  std::optional<Instant> begun;      ///< first accumulate of anybody
  std::optional<Instant> committed;  ///< first commit of anybody
  std::optional<PeerId> leader;      ///< who said so last, else who committed first
  bool led = false;                  ///< leader is from a lead event
  std::uint64_t own_samples = 0;     ///< sum of what the logged peers say of themselves
  std::uint64_t samples_total = 0;   ///< of the run, after this round
  std::uint64_t carried = 0;         ///< of its batch: left over by the round before
  bool disturbed = false;            ///< somebody was lost, came or left
  std::map<PeerId, double> calc_s, comm_s;
  /// Digests of the parameters after this round, by its record (empty: the log tells none); a peer that says
  /// two things of one has two entries.
  std::map<std::string, std::set<std::pair<PeerId, std::string>>> digests;
};

struct PeerFacts {
  std::optional<Instant> launched;
  std::optional<Round> first_round;
  std::optional<Instant> killed;
  Round killed_round = 0;
  std::optional<Round> lost_round;  ///< set while the others count it as lost
  std::optional<Instant> returned;  ///< its first event since it was lost
  bool left = false;
  bool superseded = false;  ///< others went on from a checkpoint without it
  bool stopped = false;
  std::optional<Round> resumed;  ///< its state is that of a checkpoint of this round, and nothing came since
  std::map<Round, std::uint64_t> contributed;  ///< samples
  std::string digest;
  Round digest_round = 0;
  std::optional<std::uint64_t> bytes_sent, bytes_received;
  std::optional<double> usd_per_h;

  bool stayed() const { return first_round && !lost_round && !left && !superseded; }
};

struct LossFacts {
  PeerId peer;
  Round round = 0;
  Instant begun;     ///< killed, or last sign of life
  Instant detected;  ///< kNever: nobody said so
  std::optional<double> detected_s;
  std::string why;
};

struct ArrivalFacts {
  PeerId peer;
  Round round = 0;
  std::optional<Instant> since;
  std::optional<Instant> contributed;
};

struct NoticeFacts {
  PeerId peer;
  world::Event told;
  std::optional<Instant> stopped;  ///< its process, after it
};

/// What a peer did that left before the round ended, in the hands of another one.
struct HandOverFacts {
  PeerId peer;
  world::Event told;
};

struct RunHistory {
  std::optional<Round> first_round;
  std::map<Round, RoundFacts> rounds;
  std::map<PeerId, PeerFacts> peers;
  std::vector<LossFacts> losses;
  std::vector<ArrivalFacts> arrivals;
  std::vector<std::pair<PeerId, Round>> departures;
  std::vector<NoticeFacts> notices;
  std::vector<HandOverFacts> handovers;
  /// Microbatches of a peer that counted no longer in this round: done, under way or not begun.
  std::map<std::pair<Round, PeerId>, std::uint64_t> given_out_again;
  std::optional<std::uint64_t> microbatch;  ///< samples of one
  std::set<std::uint64_t> skipped;          ///< samples that the run went on without, by number in the run
  bool insecure = false;                    ///< some peer went without TLS
};

/// All logs on one time line: a log whose wall clock runs apart from its monotonic clock by another amount
/// than that of the first log (by more than a second: another machine, or a restart of it) is shifted by the
/// difference.
std::vector<LogEntry> merge(const std::vector<std::vector<LogEntry>>& logs);

/// Entries in the order of time; what they tell of rounds that the run dropped is left out.
RunHistory gather_history(const std::vector<LogEntry>& entries, const std::vector<bool>& dropped);

}  // namespace tw::monitor
