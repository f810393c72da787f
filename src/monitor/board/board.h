// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "wire/board_rows.h"

/// What a run does and costs, at one moment: the one state that the page, `tw top`, the metrics and the
/// exports print. Plain values, no door. Rows that peers tell each other are in wire/board_rows.h. Times are
/// seconds since 1970; bytes are those of messages, without framing.
namespace tw::monitor {

using PeerState = wire::Doing;
using wire::BoardEvaluation;
using wire::BoardGpu;
using wire::BoardLink;
using wire::BoardNotice;
using wire::BoardPeer;
using wire::BoardRound;
using wire::BoardUsage;
using wire::BoardWait;
using wire::LeftOut;
using wire::SampleLedger;

/// One stretch of a peer's time, for lanes. Those of a peer do not overlap.
struct BoardSpan {
  PeerId peer;
  Round round = 0;
  PeerState state = PeerState::computing;
  double from_s = 0, to_s = 0;
  std::string why;  ///< awaited peers meanwhile, if it reported them

  static void fields(auto& self, auto&& field) {
    field("peer", self.peer);
    field("round", self.round);
    field("state", self.state);
    field("from_s", self.from_s);
    field("to_s", self.to_s);
    field("why", self.why);
  }

  bool operator==(const BoardSpan&) const = default;
};

/// A peer joined, left, was lost, got a notice, or went on from a checkpoint when all were lost.
struct Interruption {
  enum class Kind { joined, notice, handed_over, left, lost, resumed };

  Kind kind{};
  double at_s = 0;
  Round round = 0;
  PeerId peer;
  std::string detail;  ///< in words

  static void fields(auto& self, auto&& field) {
    field("kind", self.kind);
    field("at_s", self.at_s);
    field("round", self.round);
    field("peer", self.peer);
    field("detail", self.detail);
  }

  bool operator==(const Interruption&) const = default;
};

std::string_view name_of(Interruption::Kind kind);

struct UsdRange {
  double low = 0, likely = 0, high = 0;

  static void fields(auto& self, auto&& field) {
    field("low", self.low);
    field("likely", self.likely);
    field("high", self.high);
  }

  bool operator==(const UsdRange&) const = default;
};

struct Money {
  double machine_hours = 0, priced_hours = 0;
  std::optional<double> machines_usd;  ///< for the priced hours; nothing: no price is known
  std::optional<double> egress_usd = 0, requests_usd = 0;  ///< nothing: no price is known of what there was
  // Nothing, too, where the price or the hours of a peer that counts are not known.
  std::optional<double> usd_per_h;           ///< now
  std::optional<double> usd_per_million;     ///< samples, of the run so far
  std::optional<UsdRange> forecast;          ///< of the whole run; nothing: no goal or no speed yet
  std::optional<double> left_s, budget_usd;  ///< left_s: to the goal, likely

  /// Nothing where no price is known.
  std::optional<double> usd() const {
    if (!machines_usd) return std::nullopt;
    return *machines_usd + egress_usd.value_or(0) + requests_usd.value_or(0);
  }

  bool is_priced() const { return priced_hours >= 0.999 * machine_hours; }

  static void fields(auto& self, auto&& field) {
    field("machine_hours", self.machine_hours);
    field("priced_hours", self.priced_hours);
    field("machines_usd", self.machines_usd);
    field("egress_usd", self.egress_usd);
    field("requests_usd", self.requests_usd);
    field("usd_per_h", self.usd_per_h);
    field("usd_per_million", self.usd_per_million);
    field("forecast", self.forecast);
    field("left_s", self.left_s);
    field("budget_usd", self.budget_usd);
    field.computed("usd", self.usd());
    field.computed("is_priced", self.is_priced());
  }

  bool operator==(const Money&) const = default;
};

/// Over the last rounds.
struct BoardSpeed {
  double samples_per_s = 0;
  std::optional<double> goodput;      ///< share of the peers' time that went into samples that count, 0 to 1
  std::optional<double> granularity;  ///< computing time / communication time
  std::optional<double> hidden;       ///< in modes that overlap: share of averaging while its peer computed

  static void fields(auto& self, auto&& field) {
    field("samples_per_s", self.samples_per_s);
    field("goodput", self.goodput);
    field("granularity", self.granularity);
    field("hidden", self.hidden);
  }

  bool operator==(const BoardSpeed&) const = default;
};

/// What one part of a machine, or one link, costs the whole run: the time that rounds would not take if it
/// were like those of the other peers.
struct Delay {
  enum class Cause {
    loader,   ///< its program waits for data
    core,     ///< its threads wait for a processor, more than those of others
    disk,     ///< it waits for the disk of its event log, more than others
    compute,  ///< it computes slower than others on the same hardware
    link,     ///< its bandwidth is below that of others, or that of one pair below what both ends have
  };

  Cause cause{};
  PeerId peer;
  std::optional<PeerId> to;         ///< link: of this pair alone, in both directions
  std::optional<double> since_s;    ///< it costs a twentieth of the rounds since then; nothing: not now
  double round_s = 0;               ///< seconds of a round, mean of the last ones
  double share = 0;                 ///< of their time
  double seconds = 0;               ///< in all rounds
  std::optional<double> usd_per_h;  ///< of the last rounds; nothing: no price is known
  std::optional<double> usd;        ///< of all rounds

  static void fields(auto& self, auto&& field) {
    field("cause", self.cause);
    field("peer", self.peer);
    field("to", self.to);
    field("since_s", self.since_s);
    field("round_s", self.round_s);
    field("share", self.share);
    field("seconds", self.seconds);
    field("usd_per_h", self.usd_per_h);
    field("usd", self.usd);
    field.computed("what", what_of(self));
    field.computed("remedy", remedy_of(self));
  }

  bool operator==(const Delay&) const = default;
};

std::string_view name_of(Delay::Cause cause);

/// "the data loader of peer 3", "the link between peer 1 and peer 3".
std::string what_of(const Delay& delay);

/// What its user can do about it.
std::string remedy_of(const Delay& delay);

struct Board {
  std::string run;                  ///< hex digest of the run; empty: not known yet
  double now_s = 0;                 ///< time of the newest event known
  Round round = 0;                  ///< last committed
  std::optional<Round> last_round;  ///< the run ends with it, if the run file has it
  std::uint64_t samples = 0;
  BoardSpeed speed;
  std::optional<double> loss;     ///< of the last batch
  std::optional<bool> identical;  ///< parameters of all that applied a round; nothing: none, or one is apart
  bool complete = false;          ///< it reached its goal
  std::string ended;              ///< why it is over short of its goal; empty: it is not
  /// Short of its goal nobody is left, or nobody has written a line for a minute and three usual rounds (ten
  /// minutes before the second round, or where a peer waits): when the last one went, or wrote. Nothing: it
  /// goes on, or is over.
  std::optional<double> dead_since_s;
  std::vector<BoardPeer> peers;              ///< by id
  std::vector<BoardLink> links;              ///< by from, to
  std::vector<BoardRound> rounds;            ///< the newest kMostRounds, oldest first
  std::vector<BoardSpan> spans;              ///< of the newest kMostLaneRounds rounds
  std::vector<Interruption> interruptions;   ///< the newest kMostInterruptions, oldest first
  std::vector<BoardEvaluation> evaluations;  ///< of the newest rounds, kMostEvaluations; by round, name, peer
  SampleLedger ledger;
  Money money;
  std::vector<Delay> delays;  ///< the costliest of late first; of peers whose events are known
  bool own_delays = false;    ///< they are of one peer: of the others only statuses are known

  bool is_over() const { return complete || !ended.empty(); }

  /// Then it has no forecast.
  void is_dead_since(double since_s);

  static constexpr std::size_t kMostRounds = 10'000;
  static constexpr std::size_t kMostLaneRounds = 12;
  static constexpr std::size_t kMostInterruptions = 1'000;
  static constexpr std::size_t kMostDelays = 8;
  static constexpr std::size_t kMostEvaluations = 1'000;

  static void fields(auto& self, auto&& field) {
    field("run", self.run);
    field("now_s", self.now_s);
    field("round", self.round);
    field("last_round", self.last_round);
    field("samples", self.samples);
    field("speed", self.speed);
    field("loss", self.loss);
    field("identical", self.identical);
    field("complete", self.complete);
    field("ended", self.ended);
    field("dead_since_s", self.dead_since_s);
    field("peers", self.peers);
    field("links", self.links);
    field("rounds", self.rounds);
    field("spans", self.spans);
    field("interruptions", self.interruptions);
    field("evaluations", self.evaluations);
    field("ledger", self.ledger);
    field("money", self.money);
    field("delays", self.delays);
    field("own_delays", self.own_delays);
  }

  bool operator==(const Board&) const = default;
};

/// The newest of each name, in the order of the names; of several peers that of the first.
std::vector<BoardEvaluation> newest_evaluations(const Board& board);

}  // namespace tw::monitor
