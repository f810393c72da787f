// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"

namespace tw::host {

/// Decides about strangers: incoming connections that have not shown yet that they belong to the run. A
/// stranger waits until it has sent something and gets a turn; then its handshake is served until it is
/// admitted, fails or takes too long.
///
/// No host can lock out another. When all places are taken, the host with most of them loses one; turns,
/// which cost computation, go to the host with the fewest strangers being served. Within a host the newest
/// gets the turn and the oldest makes room, so a peer that answers promptly gets through. Known hosts have
/// places and turns of their own.
///
/// A step machine: no socket, no clock. A host is any text that identifies the source of a connection.
class DoorQueue {
 public:
  using Serial = std::uint64_t;  ///< drawn by the user, in the order of arrival

  static constexpr Duration kFirstByte = std::chrono::seconds(1);

  /// The numbers of places hold for strangers from known and from unknown hosts separately.
  struct Rules {
    std::size_t most_waiting = 256;
    std::size_t most_served = 128;
    Duration first_byte = kFirstByte;           ///< limit of the time to the first byte
    Duration whole = std::chrono::seconds(10);  ///< from arrival until it is admitted
    /// A handshake of TLS takes about 0.3 ms of a core (estimated): 3 % of it at most for unknown hosts, 15 %
    /// for known ones.
    Duration between_turns = std::chrono::milliseconds(10);
    Duration between_turns_of_known = std::chrono::milliseconds(2);
    int burst = 32;                            ///< turns that may be given at once after a pause
    Duration grace = std::chrono::seconds(1);  ///< a served stranger makes no room before

    /// The usual rules, with places for 3/8 of the descriptors that the process may open at most.
    static Rules within(std::uint64_t descriptors);
  };

  enum class Reason {
    silent,   ///< sent nothing in time
    slow,     ///< was not admitted in time
    crowded,  ///< made room for another one
  };

  struct Dismissal {
    Serial stranger = 0;
    Reason reason{};

    bool operator==(const Dismissal&) const = default;
  };

  /// Orders for now. A dismissed stranger is forgotten here.
  struct Decisions {
    std::vector<Dismissal> dismissed;
    std::vector<Serial> turns;  ///< to be served from now on
  };

  /// Most hosts kept as known; the one that was named first is forgotten first.
  static constexpr std::size_t kMostKnown = 4096;

  explicit DoorQueue(const Rules& rules);

  /// A peer of the run is or was at this host. Earlier strangers from there become known too.
  void know(const std::string& host);

  void arrive(Instant now, Serial stranger, const std::string& host);

  /// Its first bytes have arrived.
  void spoke(Serial stranger);

  /// It failed, and stays only to receive the reason: the first to make room among those being served.
  void failed(Serial stranger);

  /// It is admitted or gone. Ones dismissed before are ignored.
  void leave(Serial stranger);

  /// The process has no descriptor left: dismisses a stranger, if there is one that can be dismissed.
  bool make_room();

  Decisions step(Instant now);

  /// When step has to be called, if nothing happens before.
  Instant next_step() const;

 private:
  enum class Stage { silent, ready, served, leaving };

  struct Host {
    bool known = false;
    std::size_t waiting = 0;  // silent or ready
    std::size_t served = 0;   // served or leaving
  };

  using Hosts = std::map<std::string, Host>;

  struct Stranger {
    Serial serial = 0;
    Hosts::iterator host;
    Stage stage = Stage::silent;
    Instant arrived;
    Instant turn{};
  };

  /// Places taken and turns given, for unknown [0] and known [1] hosts.
  struct Row {
    std::size_t waiting = 0;
    std::size_t served = 0;
    Instant next_turn{};  // if turns came evenly
  };

  Stranger* find(Serial stranger);

  Row& row_of(const Stranger& stranger) { return rows_[stranger.host->second.known ? 1 : 0]; }

  Duration pace_of(bool known) const { return known ? rules_.between_turns_of_known : rules_.between_turns; }

  Duration limit_of(const Stranger& stranger) const {
    return stranger.stage == Stage::silent ? rules_.first_byte : rules_.whole;
  }

  Instant next_turn(bool known) const;
  std::optional<Serial> oldest_waiting(bool known) const;
  std::optional<Serial> oldest_served(bool known, Instant turned_by) const;
  std::optional<Serial> next_ready(bool known) const;
  void give_turns(Instant now, bool known, std::vector<Serial>& turns);
  void dismiss(Serial stranger, Reason reason);
  void count(const Stranger& stranger, int change);

  Rules rules_;
  Hosts hosts_;                      // with a stranger here
  std::vector<Stranger> strangers_;  // the oldest first
  Row rows_[2];
  std::set<std::string> known_;
  std::deque<std::string> known_in_order_;
  std::vector<Dismissal> dismissed_;
};

}  // namespace tw::host
