// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wire/record.h"

/// Peers and their progress: the first messages of a link, and those that it carries all the time.
namespace tw::wire {

/// What a process says of itself for good; one byte.
struct Marks {
  bool founds = false;  ///< it begins the history of the run
  bool anchor = false;  ///< its machine stays: it leads before others, and is asked for state first

  bool operator==(const Marks&) const = default;
};

/// First message of every link. The receiver turns the link away when version, run or parameter count differ.
struct Hello {
  std::uint32_t protocol = kProtocolVersion;
  Digest
      run;  ///< digest of everything that decides the result: model, data, batch sizes, optimizer, seed ...
  PeerId peer;
  std::uint64_t parameters = 0;
  std::string address;            ///< where others reach this peer
  std::uint64_t incarnation = 0;  ///< drawn when the process starts
  std::string site;               ///< as in Member
  Marks marks{};
  std::vector<std::uint32_t> facts;  ///< the facts behind `run`, 32 bits each: they show what differs

  static void fields(auto& self, auto&& field) {
    field(self.protocol, self.run, self.peer, self.parameters, self.address, self.incarnation, self.site,
          self.marks, self.facts);
  }

  bool operator==(const Hello&) const = default;
};

/// The peers that the sender knows: the receiver dials those it does not know yet.
struct Peers {
  std::vector<Member> peers;

  static void fields(auto& self, auto&& field) { field(self.peers); }

  bool operator==(const Peers&) const = default;
};

enum class PeerState : std::uint8_t {
  fresh,    ///< no record yet
  syncing,  ///< takes state from others
  ready,    ///< at the head of the history, not a member yet
  member,
  leaving,
};

/// A peer's expectation of its stay.
enum class Outlook : std::uint8_t {
  steady,
  at_risk,  ///< its machine may be taken away soon: it neither leads nor keeps sums of others
  leaves,   ///< so does it, within a known time: it hands over its sums
};

/// Where the thread is that computes and applies updates, as far as others have to know. The engine of the
/// peer votes, reduces and serves in each case.
enum class Presence : std::uint8_t {
  here,
  away,  ///< it gets no work, and when it applies the next update is not known: it leads only if all are so
  full,  ///< the same, and no more means can wait for it: the next record does not name the peer
};

/// Progress of a peer that takes the state and means of others.
struct CatchingUp {
  /// Since it was a member last: how often it came no nearer to the head.
  std::uint32_t lost_ground = 0;
  std::uint64_t pieces = 0;  ///< useful chunks, ever: it moves as long as this grows

  static void fields(auto& self, auto&& field) { field(self.lost_ground, self.pieces); }

  bool operator==(const CatchingUp&) const = default;
};

/// The wish of a program that its run ends before its last round. A peer that hears it tells it to others, so
/// that it outlives the peer that had it.
struct RunEnd {
  PeerId by;
  Round rounds = 0;  ///< RunOptions::rounds of that peer: a run that was prolonged since goes on

  static void fields(auto& self, auto&& field) { field(self.by, self.rounds); }

  bool operator==(const RunEnd&) const = default;
};

/// Sent to every peer, the more often the fewer there are (swarm/members/heartbeat_schedule.h). Times are the
/// sender's and opaque to others.
struct Heartbeat {
  PeerState peer_state = PeerState::fresh;
  Round head = 0;
  Digest head_record;
  std::uint64_t majority_samples = 0;  ///< of the record `head`
  std::uint64_t samples = 0;           ///< of its history: Record::samples_total()
  bool had_company = false;            ///< as in Record
  std::uint32_t restarts = 0;
  std::uint64_t sent_ns = 0;
  std::uint64_t echo_ns = 0;        ///< the last sent_ns from the receiver; 0 = none
  std::uint64_t echo_delay_ns = 0;  ///< how long the sender has had it
  std::uint32_t next_ms = 0;        ///< the next one is due at most this long after this one
  CatchingUp catching_up;
  Outlook outlook = Outlook::steady;
  Presence presence = Presence::here;
  std::optional<RunEnd> run_end;

  static void fields(auto& self, auto&& field) {
    field(self.peer_state, self.head, self.head_record, self.majority_samples, self.samples, self.had_company,
          self.restarts, self.sent_ns, self.echo_ns, self.echo_delay_ns, self.next_ms, self.catching_up,
          self.outlook, self.presence, self.run_end);
  }

  bool operator==(const Heartbeat&) const = default;
};

}  // namespace tw::wire
