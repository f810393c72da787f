// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "wire/link_messages.h"

namespace tw::swarm {

/// This peer's own part in the run: its state (PeerState, as others are told), whether it stays, and what it
/// waits for before it begins a history or leads one. A value with checked transitions.
class Part {
 public:
  enum class Stay : std::uint8_t {
    stays,
    leaves,  ///< it hands in what is done, and goes after the round
    ended,   ///< its part in the run is over
  };

  enum class Outset : std::uint8_t {
    awaits_others,   ///< the run had begun before: it begins nothing until it is told to go on alone
    free,            ///< it begins or goes on
    awaits_company,  ///< it began anew from a checkpoint: it leads when as many are here as at a beginning
  };

  /// returns: the run had begun before this process did.
  explicit Part(bool returns) : outset_(returns ? Outset::awaits_others : Outset::free) {}

  wire::PeerState peer_state() const { return peer_state_; }

  Stay stay() const { return stay_; }

  Outset outset() const { return outset_; }

  bool leaves() const { return stay_ == Stay::leaves; }

  bool ended() const { return stay_ == Stay::ended; }

  bool is_member() const {
    return peer_state_ == wire::PeerState::member || peer_state_ == wire::PeerState::leaving;
  }

  /// True at the head of the history, until it ends.
  bool takes_part() const { return !ended() && (peer_state_ == wire::PeerState::ready || is_member()); }

  // ---- transitions
  /// A record is the new head. as_member: it names this process.
  void follow(bool as_member);

  /// Others are ahead: this peer takes their state. Requires that it takes part or is fresh.
  void fall_behind();

  /// This peer has to leave. True when others have to be told, since it is a member. Requires that it stays.
  bool leave();

  /// Requires that it has not ended.
  void end();

  /// No peer of the run was found.
  void go_on_alone();

  /// It has the state of a checkpoint, and no head yet.
  void begin_anew();

  /// A round was decided: all that have to be here are.
  void decided() { outset_ = Outset::free; }

 private:
  void enter(wire::PeerState next);

  wire::PeerState peer_state_ = wire::PeerState::fresh;
  Stay stay_ = Stay::stays;
  Outset outset_;
};

}  // namespace tw::swarm
