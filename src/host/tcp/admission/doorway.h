// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/ip/tcp.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "host/lifeline.h"
#include "host/tcp/admission/door_queue.h"

namespace tw::host {

class Listener;
class Loop;

/// What shares are counted by: an IPv4 address, or the 64 bits that name a network of IPv6, within which
/// anybody may take any address.
std::string sharing_host(const asio::ip::address& address);

/// Accepts connections and admits them by the rules of DoorQueue, at the port of the peers and at that of the
/// page. A waiting one costs only a descriptor: nothing is sent, read or computed for it before its turn.
/// Loop thread only.
class Doorway {
 public:
  using Visitor = DoorQueue::Serial;
  using Reason = DoorQueue::Reason;

  /// Called from the loop, none from inside a call of Doorway.
  struct Calls {
    std::function<void(Visitor visitor, asio::ip::tcp::socket socket)> enter;
    /// A visitor that entered must be disconnected.
    std::function<void(Visitor visitor, Reason reason)> dismiss;
    /// One that did not enter is gone; without a reason it ended by itself.
    std::function<void(const std::string& remote, std::optional<Reason> reason)> gone;
    /// Nobody can come in for a while, and nobody is here who could be sent away; once a minute at most.
    std::function<void(const std::string& why)> cannot_accept{};
  };

  /// "host:port"; port 0 picks a free one. Resolves a host name, blocking. Strangers must be admitted within
  /// this patience.
  static Result<std::unique_ptr<Doorway>> open(Loop& loop, const std::string& address, Duration patience,
                                               Calls calls);

  ~Doorway();
  Doorway(const Doorway&) = delete;
  Doorway& operator=(const Doorway&) = delete;

  /// Where others reach this peer, see Listener::address.
  const std::string& address() const;

  /// A peer of the run is at this "host:port", or was. Host names are ignored.
  void know(const std::string& address);

  /// About a visitor that entered: it is refused and may still receive the reason, or it is admitted or gone.
  void failed(Visitor visitor);
  void leave(Visitor visitor);

 private:
  struct Waiting;

  Doorway(Loop& loop, Duration patience, Calls calls);

  void arrive(std::unique_ptr<Waiting> stranger);
  void listen_to(Visitor visitor);
  void hear(Visitor visitor);
  bool make_room(const std::error_code& why);
  void note_cannot_accept(const std::error_code& why);
  void step();
  void arm();
  void dismiss(const DoorQueue::Dismissal& dismissal);

  Loop& loop_;
  Calls calls_;
  DoorQueue queue_;
  std::unique_ptr<Listener> listener_;
  std::map<Visitor, std::unique_ptr<Waiting>> waiting_;
  Visitor last_ = 0;
  Instant armed_ = kNever;
  std::optional<Instant> cannot_accept_since_;
  std::optional<Instant> told_cannot_accept_;
  Lifeline life_;
};

}  // namespace tw::host
