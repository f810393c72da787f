// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "wire/board_usage.h"

/// The rows of the board of a run (monitor/board/board.h): peers tell each other theirs once a second
/// (Status) and print them as JSON, both by fields(). Times are seconds since 1970; bytes are those of
/// messages, without framing. No value means: not known.
namespace tw::wire {

/// Present activity of a peer.
enum class Doing : std::uint8_t {
  starting,   ///< it has a process, but no state of the run yet
  computing,  ///< it accumulates gradients
  averaging,  ///< from the end of its own work to the commit; with overlap: of its work ahead
  applying,   ///< the update, or other work of its own between two rounds
  fetching,   ///< the state of the run, from others or from a checkpoint
  leaving,    ///< it has a notice or was told to leave
  left,       ///< on its own will, or the run is complete
  lost,       ///< others declared it lost
};

inline std::string_view name_of(Doing doing) {
  constexpr std::array<std::string_view, 8> kNames = {"starting", "computing", "averaging", "applying",
                                                      "fetching", "leaving",   "left",      "lost"};
  return kNames.at(static_cast<std::size_t>(doing));
}

struct BoardNotice {
  std::string source;  ///< "aws"
  std::string kind;    ///< "preempt"
  double told_s = 0;
  std::optional<double> deadline_s;  ///< nothing: no deadline

  static void fields(auto& self, auto&& field) {
    field("source", self.source);
    field("kind", self.kind);
    field("told_s", self.told_s);
    field("deadline_s", self.deadline_s);
  }

  bool operator==(const BoardNotice&) const = default;
};

/// What a peer waits for, in the words of swarm::text_of.
struct BoardWait {
  std::string text;
  double since_s = 0;
  std::vector<PeerId> peers;  ///< awaited peers; none: own work, or no peer is known

  static void fields(auto& self, auto&& field) {
    field("text", self.text);
    field("since_s", self.since_s);
    field("peers", self.peers);
  }

  bool operator==(const BoardWait&) const = default;
};

struct BoardPeer {
  PeerId peer;
  std::string site;      ///< provider:region:zone; empty: not known
  std::string hardware;  ///< in words; empty: not known
  bool anchor = false;
  Doing state = Doing::starting;
  double since_s = 0;  ///< in this state
  double heard_s = 0;  ///< time of its last sign of life
  Round round = 0;     ///< round that it works at
  std::uint64_t rounds = 0,
                samples = 0;  ///< rounds that it contributed to, and its samples in them; committed
  double samples_per_s = 0;   ///< over its last rounds
  BoardUsage usage;
  std::optional<BoardGpu> gpu;
  double up_mbit_s = 0, down_mbit_s = 0;  ///< bandwidth that transfers have shown; 0: not known
  std::string digest;                     ///< of its parameters after digest_round
  Round digest_round = 0;
  std::optional<BoardNotice> notice;
  std::optional<BoardWait> wait;
  std::optional<double> usd_per_h;
  std::string ended;  ///< why it left or is lost, or since when it trains alone

  static void fields(auto& self, auto&& field) {
    field("peer", self.peer);
    field("site", self.site);
    field("hardware", self.hardware);
    field("anchor", self.anchor);
    field("state", self.state);
    field("since_s", self.since_s);
    field("heard_s", self.heard_s);
    field("round", self.round);
    field("rounds", self.rounds);
    field("samples", self.samples);
    field("samples_per_s", self.samples_per_s);
    field("usage", self.usage);
    field("gpu", self.gpu);
    field("up_mbit_s", self.up_mbit_s);
    field("down_mbit_s", self.down_mbit_s);
    field("digest", self.digest);
    field("digest_round", self.digest_round);
    field("notice", self.notice);
    field("wait", self.wait);
    field("usd_per_h", self.usd_per_h);
    field("ended", self.ended);
  }

  bool operator==(const BoardPeer&) const = default;
};

/// Traffic from one site to another, of all peers; or from a store to a site, or from a site to a store.
struct BoardLink {
  std::string from, to;
  std::uint64_t bytes = 0;
  double mbit_s = 0;  ///< over the last ten seconds of the run or more
  /// The lesser of what all peers of `from` can send and all of `to` take, as far as measured.
  std::optional<double> bound_mbit_s;
  std::optional<double> usd_per_gb;
  double usd = 0;              ///< of the bytes
  std::string store;           ///< the end that is a store; empty: both are sites
  std::uint64_t requests = 0;  ///< to read from the store; or to write into it or list it, by the direction
  std::optional<double> requests_usd;

  bool reads_store() const { return !store.empty() && from == store; }

  bool writes_store() const { return !store.empty() && to == store; }

  static void fields(auto& self, auto&& field) {
    field("from", self.from);
    field("to", self.to);
    field("bytes", self.bytes);
    field("mbit_s", self.mbit_s);
    field("bound_mbit_s", self.bound_mbit_s);
    field("usd_per_gb", self.usd_per_gb);
    field("usd", self.usd);
    field("store", self.store);
    field("requests", self.requests);
    field("requests_usd", self.requests_usd);
  }

  bool operator==(const BoardLink&) const = default;
};

struct LeftOut {
  PeerId peer;
  std::string why;

  static void fields(auto& self, auto&& field) {
    field("peer", self.peer);
    field("why", self.why);
  }

  bool operator==(const LeftOut&) const = default;
};

struct BoardRound {
  Round round = 0;
  double begun_s = 0;
  std::optional<double> called_s, committed_s;  ///< nothing: not yet
  std::optional<double> calc_s, comm_s;         ///< of the peer with a part in it that was ready last
  std::optional<double> bound_share;            ///< least time of this averaging by bandwidth / comm_s
  std::uint64_t samples = 0;                    ///< in the mean
  std::uint64_t samples_total = 0;              ///< of the run after it; 0: not known
  std::uint64_t carried = 0;                    ///< left over by the round before
  std::vector<PeerId> contributors;
  std::vector<LeftOut> left_out;
  std::optional<double> loss;  ///< of the batch

  static void fields(auto& self, auto&& field) {
    field("round", self.round);
    field("begun_s", self.begun_s);
    field("called_s", self.called_s);
    field("committed_s", self.committed_s);
    field("calc_s", self.calc_s);
    field("comm_s", self.comm_s);
    field("bound_share", self.bound_share);
    field("samples", self.samples);
    field("samples_total", self.samples_total);
    field("carried", self.carried);
    field("contributors", self.contributors);
    field("left_out", self.left_out);
    field("loss", self.loss);
  }

  bool operator==(const BoardRound&) const = default;
};

/// What a program measured of the parameters after a round, on data that it does not train on.
struct BoardEvaluation {
  Round round = 0;
  double at_s = 0;
  PeerId peer;
  std::string name;  ///< "accuracy"
  double value = 0;

  static void fields(auto& self, auto&& field) {
    field("round", self.round);
    field("at_s", self.at_s);
    field("peer", self.peer);
    field("name", self.name);
    field("value", self.value);
  }

  bool operator==(const BoardEvaluation&) const = default;
};

/// Every sample that was leased is in one of these.
struct SampleLedger {
  std::uint64_t committed = 0;    ///< computed, and in means
  std::uint64_t handed_over = 0;  ///< of these: by peers that left
  std::uint64_t again = 0;        ///< leased again, at most
  std::uint64_t skipped = 0;      ///< skipped by the run: they add nothing to a mean

  static void fields(auto& self, auto&& field) {
    field("committed", self.committed);
    field("handed_over", self.handed_over);
    field("again", self.again);
    field("skipped", self.skipped);
  }

  bool operator==(const SampleLedger&) const = default;
};

}  // namespace tw::wire
