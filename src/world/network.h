// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/blob.h"
#include "base/ids.h"
#include "base/result.h"

namespace tw::world {

/// Why a link is turned away: a code for programs, words for people. All but `other` are reasons that no
/// later dial of the same process can change.
struct Refusal {
  enum class Code : std::uint8_t {
    other,
    version,     ///< another version of the protocol
    parameters,  ///< another model
    run,         ///< another run
    taken,       ///< another process takes part under the id `peer`
    self,        ///< it called itself
    credential,  ///< no token that holds for both, or TLS on one side alone
  };

  static constexpr Code kLast = Code::credential;

  std::string words;
  Code code = Code::other;
  PeerId peer{};            ///< taken, self: the id in question
  std::uint32_t place = 0;  ///< parameters, run: of the first fact that differs, counted from 1; 0: not known

  bool operator==(const Refusal&) const = default;
};

/// The peer that is let in, or why it is not.
using Admission = std::variant<PeerId, Refusal>;

/// Why a dial came to nothing.
struct DialFailure {
  enum class Kind {
    unreachable,  ///< no peer answered there
    linked,       ///< the peer that answered is linked already
    turned_away,  ///< one of the two sides refused the link: `why` is the message of its admit
  };

  Kind kind{};
  Refusal why;  ///< without the address
};

/// Events of a network for its user; every call comes on the loop thread, none from inside a call of Network.
class NetworkEvents {
 public:
  virtual ~NetworkEvents() = default;

  /// Judges the hello of whoever is at the other end before anything else is taken from it.
  /// A refusal travels to the other side (on_refused there).
  virtual Admission admit(const Frame& hello) = 0;

  /// The link that was admitted by this hello can be used now; at most one link per peer is open at a time.
  virtual void on_open(PeerId peer, const Frame& hello) = 0;

  /// Messages of one link arrive whole: control messages in the order in which they were sent, bulk messages
  /// in any order.
  virtual void on_message(PeerId from, Frame frame) = 0;

  /// The link is gone, with everything under way on it. Not called after Network::close.
  virtual void on_close(PeerId peer, const std::string& why) = 0;

  /// A dial of this address failed, or the process at this address was not admitted.
  virtual void on_refused(const std::string& address, const DialFailure& failure) = 0;

  /// The bulk stream of an open link has room: the next bulk message, or nothing until Network::pull.
  virtual std::optional<Frame> next_bulk(PeerId to) = 0;
};

/// Door to the other peers: whole messages in two priorities. Control messages are pushed and never wait for
/// bulk ones. Bulk messages are pulled when their stream has room, so that only the stream queues them. The
/// head of a message is never empty. Loop thread only.
class Network {
 public:
  virtual ~Network() = default;

  /// Starts listening and greeting: hello is sent first on every link. Events come from now on.
  /// Returns the address at which others reach this peer.
  virtual Result<std::string> open(const std::string& listen_address, NetworkEvents& events) = 0;

  /// Sets the hello of all links from now on.
  virtual void greet_with(Frame hello) = 0;

  /// Dials; ends in on_open or on_refused, and so do other dials of this address under way.
  virtual void connect(const std::string& address) = 0;

  /// Drops the link after sent messages had their chance to leave.
  virtual void close(PeerId peer) = 0;

  /// Sends a control message; dropped when there is no link.
  virtual void send(PeerId to, Frame message) = 0;

  /// There may be bulk messages for this peer: call next_bulk when there is room.
  virtual void pull(PeerId to) = 0;
};

}  // namespace tw::world
