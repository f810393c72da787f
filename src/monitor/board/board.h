// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"

/// What a run does and costs, at one moment: the one state that the page, `tw top`, the metrics and the
/// exports print. Plain values, no door. Times are seconds since 1970; bytes are those of messages, without
/// framing.
namespace tw::monitor {

enum class PeerState {
  starting,   ///< it has a process, but no state of the run yet
  computing,  ///< it accumulates gradients
  averaging,  ///< from the call to the commit
  applying,   ///< the update, or other work of its own between two rounds
  fetching,   ///< the state of the run, from others or from a checkpoint
  leaving,    ///< it has a notice or was told to leave
  left,       ///< on its own will, or the run is complete
  lost,       ///< others declared it lost
};

std::string_view name_of(PeerState state);

struct BoardNotice {
  std::string source;  ///< "aws"
  std::string kind;    ///< "preempt"
  double told_s = 0;
  std::optional<double> deadline_s;  ///< nothing: no deadline

  bool operator==(const BoardNotice&) const = default;
};

/// What a peer waits for, in the words of swarm::text_of.
struct BoardWait {
  std::string text;
  double since_s = 0;
  std::vector<PeerId> peers;  ///< awaited peers; none: own work, or no peer is known

  bool operator==(const BoardWait&) const = default;
};

/// Resources used by a peer's processes.
struct BoardUsage {
  double hours = 0;
  double cpu_s = 0;
  std::uint64_t peak_memory = 0;  ///< bytes
  std::uint64_t bytes_sent = 0, bytes_received = 0;

  bool operator==(const BoardUsage&) const = default;
};

struct BoardPeer {
  PeerId peer;
  std::string site;      ///< provider:region:zone; empty: not known
  std::string hardware;  ///< in words; empty: not known
  bool anchor = false;
  PeerState state = PeerState::starting;
  double since_s = 0;  ///< in this state
  double heard_s = 0;  ///< time of its last sign of life
  Round round = 0;     ///< round that it works at
  std::uint64_t rounds = 0,
                samples = 0;  ///< rounds that it contributed to, and its samples in them; committed
  double samples_per_s = 0;   ///< over its last rounds
  BoardUsage usage;
  std::string digest;  ///< of its parameters after digest_round
  Round digest_round = 0;
  std::optional<BoardNotice> notice;
  std::optional<BoardWait> wait;
  std::optional<double> usd_per_h;  ///< nothing: not known
  std::string ended;                ///< why it left or is lost

  bool operator==(const BoardPeer&) const = default;
};

/// Traffic from one site to another, of all peers; or from a store to a site, or from a site to a store.
struct BoardLink {
  std::string from, to;
  std::uint64_t bytes = 0;
  double mbit_s = 0;  ///< over the last ten seconds of the run or more
  /// The lesser of what all peers of `from` can send and all of `to` take, as far as measured.
  std::optional<double> bound_mbit_s;
  std::optional<double> usd_per_gb;  ///< nothing: not known
  double usd = 0;                    ///< of the bytes
  std::string store;                 ///< the end that is a store; empty: both are sites
  std::uint64_t requests = 0;  ///< to read from the store; or to write into it or list it, by the direction
  std::optional<double> requests_usd;  ///< nothing: not known, or no store

  bool reads_store() const { return !store.empty() && from == store; }

  bool writes_store() const { return !store.empty() && to == store; }

  bool operator==(const BoardLink&) const = default;
};

struct LeftOut {
  PeerId peer;
  std::string why;

  bool operator==(const LeftOut&) const = default;
};

struct BoardRound {
  Round round = 0;
  double begun_s = 0;
  std::optional<double> called_s, committed_s;  ///< nothing: not yet
  std::optional<double> calc_s, comm_s;         ///< durations, as its leader saw them
  std::optional<double> bound_share;            ///< least time of this averaging by bandwidth / comm_s
  std::uint64_t samples = 0;                    ///< in the mean
  std::uint64_t samples_total = 0;              ///< of the run after it; 0: not known
  std::uint64_t carried = 0;                    ///< left over by the round before
  std::vector<PeerId> contributors;
  std::vector<LeftOut> left_out;
  std::optional<double> loss;  ///< of the batch

  bool operator==(const BoardRound&) const = default;
};

/// One stretch of a peer's time, for lanes. Those of a peer do not overlap.
struct BoardSpan {
  PeerId peer;
  Round round = 0;
  PeerState state = PeerState::computing;
  double from_s = 0, to_s = 0;
  std::string why;  ///< awaited peers meanwhile, if it reported them

  bool operator==(const BoardSpan&) const = default;
};

/// A peer joined, left, was lost or got a notice.
struct Interruption {
  enum class Kind { joined, notice, handed_over, left, lost };

  Kind kind{};
  double at_s = 0;
  Round round = 0;
  PeerId peer;
  std::string detail;  ///< in words

  bool operator==(const Interruption&) const = default;
};

std::string_view name_of(Interruption::Kind kind);

/// Every sample that was leased is in one of these.
struct SampleLedger {
  std::uint64_t committed = 0;    ///< computed, and in means
  std::uint64_t handed_over = 0;  ///< of these: by peers that left
  std::uint64_t again = 0;        ///< leased again, at most
  std::uint64_t skipped = 0;      ///< skipped by the run: they add nothing to a mean

  bool operator==(const SampleLedger&) const = default;
};

struct UsdRange {
  double low = 0, likely = 0, high = 0;

  bool operator==(const UsdRange&) const = default;
};

struct Money {
  double machine_hours = 0, priced_hours = 0;
  std::optional<double> machines_usd;  ///< for the priced hours; nothing: no price is known
  double egress_usd = 0, requests_usd = 0;
  std::optional<double> usd_per_h;        ///< now
  std::optional<double> usd_per_million;  ///< samples, of the run so far
  std::optional<UsdRange> forecast;       ///< of the whole run; nothing: no goal or no speed yet
  std::optional<double> left_s;           ///< to the goal, likely
  std::optional<double> budget_usd;

  /// Nothing where no price is known.
  std::optional<double> usd() const {
    return machines_usd ? std::optional(*machines_usd + egress_usd + requests_usd) : std::nullopt;
  }

  bool operator==(const Money&) const = default;
};

/// Over the last rounds.
struct BoardSpeed {
  double samples_per_s = 0;
  std::optional<double> goodput;      ///< share of the peers' time that went into samples that count, 0 to 1
  std::optional<double> granularity;  ///< computing time / communication time

  bool operator==(const BoardSpeed&) const = default;
};

struct Board {
  std::string run;                  ///< hex digest of the run; empty: not known yet
  double now_s = 0;                 ///< time of the newest event known
  Round round = 0;                  ///< last committed
  std::optional<Round> last_round;  ///< the run ends with it, if the run file has it
  std::uint64_t samples = 0;
  BoardSpeed speed;
  std::optional<double> loss;      ///< of the last batch
  std::optional<bool> identical;   ///< same parameters on all that applied a round; nothing: none applied
  bool complete = false;           ///< it reached its goal
  std::string ended;               ///< why it is over short of its goal; empty: it is not
  std::vector<BoardPeer> peers;    ///< by id
  std::vector<BoardLink> links;    ///< by from, to
  std::vector<BoardRound> rounds;  ///< the newest kMostRounds, oldest first
  std::vector<BoardSpan> spans;    ///< of the newest kMostLaneRounds rounds
  std::vector<Interruption> interruptions;  ///< the newest kMostInterruptions, oldest first
  SampleLedger ledger;
  Money money;

  bool is_over() const { return complete || !ended.empty(); }

  static constexpr std::size_t kMostRounds = 10'000;
  static constexpr std::size_t kMostLaneRounds = 12;
  static constexpr std::size_t kMostInterruptions = 1'000;

  bool operator==(const Board&) const = default;
};

}  // namespace tw::monitor
