// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/ids.h"
#include "wire/limits.h"

/// A peer's report of itself once a second, for display only: it decides nothing. All times are ages at
/// sending, since clocks differ.
namespace tw::wire {

/// Present activity of a peer.
enum class Doing : std::uint8_t { starting, computing, averaging, applying, fetching, leaving, left };

/// The last round that was committed at this peer.
struct RoundWord {
  Round round = 0;  ///< 0: none yet
  double begun_ago_s = 0, called_ago_s = 0, committed_ago_s = 0;
  double calc_s = 0, comm_s = 0;
  bool leads = false;               ///< it led the round
  std::uint64_t samples_total = 0;  ///< of the run

  static void fields(auto& self, auto&& field) {
    field(self.round, self.begun_ago_s, self.called_ago_s, self.committed_ago_s, self.calc_s, self.comm_s,
          self.leads, self.samples_total);
  }

  bool operator==(const RoundWord&) const = default;
};

/// Counted out of a round, as the sender saw it.
struct LeftOutWord {
  PeerId peer;
  std::string why;

  static void fields(auto& self, auto&& field) { field(self.peer, self.why); }

  bool operator==(const LeftOutWord&) const = default;
};

/// The sender's own part of a round that it committed. Rounds may be shorter than the time between two words.
struct ShareWord {
  Round round = 0;
  double committed_ago_s = 0;
  std::uint64_t samples = 0;   ///< own ones in the mean
  std::optional<double> loss;  ///< their mean
  std::vector<LeftOutWord> left_out;

  static void fields(auto& self, auto&& field) {
    field(self.round, self.committed_ago_s, self.samples, self.loss, self.left_out);
  }

  bool operator==(const ShareWord&) const = default;
};

/// Samples of which the sender's own events tell, since its process began.
struct LedgerWord {
  std::uint64_t again = 0, handed_over = 0, skipped = 0;

  static void fields(auto& self, auto&& field) { field(self.again, self.handed_over, self.skipped); }

  bool operator==(const LedgerWord&) const = default;
};

/// What its processes used, all of them that it knows of.
struct UsageWord {
  double hours = 0, cpu_s = 0;
  std::uint64_t peak_memory = 0, bytes_sent = 0, bytes_received = 0;

  static void fields(auto& self, auto&& field) {
    field(self.hours, self.cpu_s, self.peak_memory, self.bytes_sent, self.bytes_received);
  }

  bool operator==(const UsageWord&) const = default;
};

/// Bytes of messages that this peer sent to a site.
struct SiteBytes {
  std::string site;
  std::uint64_t bytes = 0;

  static void fields(auto& self, auto&& field) { field(self.site, self.bytes); }

  bool operator==(const SiteBytes&) const = default;
};

/// Use of a store by this peer, under the name that has the store's prices.
struct StoreWord {
  std::string store;
  std::uint64_t reads = 0, bytes = 0;  ///< world::StoreUse
  std::uint64_t writes = 0, written_bytes = 0;

  static void fields(auto& self, auto&& field) {
    field(self.store, self.reads, self.bytes, self.writes, self.written_bytes);
  }

  bool operator==(const StoreWord&) const = default;
};

struct NoticeWord {
  std::string source, kind;
  double told_ago_s = 0;
  std::optional<double> deadline_in_s;

  static void fields(auto& self, auto&& field) {
    field(self.source, self.kind, self.told_ago_s, self.deadline_in_s);
  }

  bool operator==(const NoticeWord&) const = default;
};

struct WaitWord {
  std::string text;
  double since_ago_s = 0;
  std::vector<PeerId> peers;

  static void fields(auto& self, auto&& field) { field(self.text, self.since_ago_s, self.peers); }

  bool operator==(const WaitWord&) const = default;
};

/// What peers cost and told that are gone, as far as the sender knows: one that came later learns it from it.
struct GoneWord {
  double hours = 0, priced_hours = 0, machines_usd = 0, egress_usd = 0, requests_usd = 0;
  LedgerWord ledger;

  static void fields(auto& self, auto&& field) {
    field(self.hours, self.priced_hours, self.machines_usd, self.egress_usd, self.requests_usd, self.ledger);
  }

  bool operator==(const GoneWord&) const = default;
};

/// Bandwidth of the sender in 1e6 bit/s, as far as transfers have shown it. 0: not known.
struct LineWord {
  double up_mbit_s = 0, down_mbit_s = 0;

  static void fields(auto& self, auto&& field) { field(self.up_mbit_s, self.down_mbit_s); }

  bool operator==(const LineWord&) const = default;
};

/// The sender's parameters: those after this round.
struct ParametersWord {
  Round round = 0;
  Digest digest;

  static void fields(auto& self, auto&& field) { field(self.round, self.digest); }

  bool operator==(const ParametersWord&) const = default;
};

/// Where the sender stands in the barriers of the run (peer/barrier.h): at which it is, or was last.
struct BarrierWord {
  std::uint64_t number = 0;
  bool stands = false;

  static void fields(auto& self, auto&& field) { field(self.number, self.stands); }

  bool operator==(const BarrierWord&) const = default;
};

struct Status {
  std::string site;  ///< as in Member
  std::string hardware;
  bool anchor = false;
  Doing doing = Doing::starting;
  Round round = 0;
  double since_ago_s = 0;  ///< how long it has been doing that
  RoundWord last;
  std::vector<ShareWord> shares;          ///< its part of the last rounds, the newest last
  std::uint64_t rounds = 0, samples = 0;  ///< that it contributed to, and with
  double samples_per_s = 0;
  UsageWord usage;
  std::vector<SiteBytes> sent;
  std::vector<StoreWord> stores;
  LineWord line;
  std::optional<ParametersWord> parameters;
  std::optional<NoticeWord> notice;
  std::optional<WaitWord> wait;
  std::optional<double> usd_per_h;
  LedgerWord ledger;
  GoneWord gone;
  BarrierWord barrier;

  static void fields(auto& self, auto&& field) {
    field(self.site, self.hardware, self.anchor, self.doing, self.round, self.since_ago_s, self.last,
          self.shares, self.rounds, self.samples, self.samples_per_s, self.usage, self.sent, self.stores,
          self.line, self.parameters, self.notice, self.wait, self.usd_per_h, self.ledger, self.gone,
          self.barrier);
  }

  bool operator==(const Status&) const = default;
};

/// Finite and not below 0.
inline bool are_amounts(auto... values) {
  constexpr double kMost = 1e12;
  return ((std::isfinite(values) && values >= 0 && values <= kMost) && ...);
}

inline bool is_sound(const ShareWord& share) {
  return are_amounts(share.committed_ago_s) && std::isfinite(share.loss.value_or(0)) &&
         share.left_out.size() <= kMostLeftOut &&
         std::ranges::all_of(share.left_out,
                             [](const LeftOutWord& out) { return out.why.size() <= kMostWhyBytes; });
}

/// Texts and lists within their bounds, numbers finite and none below 0. What is not, is ignored.
inline bool is_sound(const Status& s) {
  const RoundWord& r = s.last;
  const bool plain = are_amounts(
      s.since_ago_s, s.samples_per_s, s.usd_per_h.value_or(0), r.begun_ago_s, r.called_ago_s,
      r.committed_ago_s, r.calc_s, r.comm_s, s.usage.hours, s.usage.cpu_s, s.gone.hours, s.gone.priced_hours,
      s.gone.machines_usd, s.gone.egress_usd, s.gone.requests_usd, s.line.up_mbit_s, s.line.down_mbit_s);
  const bool short_enough =
      s.site.size() <= kMostSiteBytes && s.hardware.size() <= kMostHardwareBytes &&
      s.sent.size() <= kMostSentSites &&
      std::ranges::all_of(s.sent, [](const SiteBytes& to) { return to.site.size() <= kMostSiteBytes; }) &&
      s.stores.size() <= kMostStores &&
      std::ranges::all_of(s.stores, [](const StoreWord& of) { return of.store.size() <= kMostSiteBytes; });
  const bool notice =
      !s.notice ||
      (s.notice->source.size() <= kMostNoticeBytes && s.notice->kind.size() <= kMostNoticeBytes &&
       are_amounts(s.notice->told_ago_s) && std::isfinite(s.notice->deadline_in_s.value_or(0)));
  const bool wait = !s.wait || (s.wait->text.size() <= kMostWaitBytes &&
                                s.wait->peers.size() <= kMostWaitPeers && are_amounts(s.wait->since_ago_s));
  const bool shares = s.shares.size() <= kMostShares &&
                      std::ranges::all_of(s.shares, [](const ShareWord& share) { return is_sound(share); });
  return plain && shares && short_enough && notice && wait;
}

}  // namespace tw::wire
