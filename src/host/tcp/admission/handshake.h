// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/tcp/admission/reception.h"
#include "host/tcp/stream_user.h"
#include "host/tcp/traffic.h"

namespace tw::host {

/// A connection that may become a link (with its bulk stream).
///
///   dialer                            other side
///   greet, hello            ->                        control stream
///                           <-        greet, hello    or refuse, duplicate
///   accept                  ->                        or refuse, duplicate
///   greet                   ->                        bulk stream, same nonce
///                           <-        accept          open here; open there when it arrives
class Handshake : public StreamUser {
 public:
  enum class News {
    admitted,     ///< no stranger any more
    wants_bulk,   ///< dial bulk_address, then take_bulk
    brings_bulk,  ///< this connection is the bulk stream of another handshake: see peer and nonce
    open,         ///< both streams are open: take them
    failed,       ///< see ending and why
    left,         ///< after failed: the reason was sent; destroy it
  };

  enum class Ending {
    refused_here,   ///< this peer refused
    refused_there,  ///< the other peer refused; why is its message
    duplicate,      ///< another connection is the link between the two
    nonsense,       ///< the other side does not follow the protocol
    credential,     ///< the other side dialed, and has no token that is valid here
    lost,           ///< the connection failed, broke or took too long
  };

  using Tell = std::function<void(News)>;

  /// A dial begun at this time; goes on with connected.
  Handshake(Reception& reception, Frame hello, std::uint64_t nonce, Tell tell);

  /// A connection that came in.
  // owners of the stream: see stream.h
  Handshake(Reception& reception, Frame hello, std::shared_ptr<Stream> control, Tell tell);

  void connected(Result<std::shared_ptr<Stream>> control);  // owners: see stream.h
  void take_bulk(Result<std::shared_ptr<Stream>> bulk);     // owners: see stream.h

  /// Fails as lost, unless it is over.
  void give_up(const std::string& why);

  /// Closes what it holds, without news.
  void drop();

  bool dials() const { return dials_; }

  /// Both hellos were accepted here; the link opens unless the connection fails or the other side refuses.
  bool admitted() const { return stage_ == Stage::verdict || stage_ == Stage::bulk; }

  /// It was admitted, whatever happened later.
  bool was_admitted() const { return was_admitted_; }

  /// Whether it waits for the bulk stream with this peer and nonce.
  bool expects(PeerId peer, std::uint64_t nonce) const;

  PeerId peer() const { return peer_; }

  /// Theirs, once it is admitted.
  const Frame& hello() const { return their_hello_; }

  std::uint64_t nonce() const { return nonce_; }

  Ending ending() const { return ending_; }

  const world::Refusal& why() const { return why_; }

  const std::string& remote() const;

  /// Bytes of the streams that it still holds.
  LinkBytes bytes() const;

  // owners: see stream.h
  std::shared_ptr<Stream> release_control() { return std::move(control_); }

  // owners: see stream.h
  std::shared_ptr<Stream> release_bulk() { return std::move(bulk_); }

  void on_frame(Stream& stream, Frame frame) override;

  void on_room(Stream&) override {}

  void on_end(Stream& stream, const std::string& why) override;

 private:
  enum class Stage { connecting, greeting, hello, verdict, bulk, leaving, open };

  void hear_greeting(const Greeting& greeting);
  void hear_hello(const Frame& hello);
  void hear_verdict(const Greeting& greeting);
  void hear_bulk(const Greeting& greeting);
  void heard_no(const Greeting& greeting);
  void say(Stream& stream, StreamKind kind, Verdict verdict, world::Refusal reason = {});
  void turn_away(const Refusal& refusal);
  void open_if_complete();
  void fail(Ending ending, world::Refusal why);

  Reception& reception_;
  Frame hello_;  // ours
  Frame their_hello_;
  bool dials_;
  std::uint64_t nonce_;
  Tell tell_;
  Stage stage_;
  PeerId peer_;
  std::shared_ptr<Stream> control_;  // owners: see stream.h
  std::shared_ptr<Stream> bulk_;     // owners: see stream.h
  bool was_admitted_ = false;
  Ending ending_{};
  world::Refusal why_;
};

}  // namespace tw::host
