// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "host/tcp/admission/greeting.h"
#include "host/tcp/stream_user.h"
#include "host/tcp/traffic.h"

namespace tw::host {

/// A connection that may become another data stream of an open link, identified by the nonce of the link:
///
///   dialer                  other side
///   greet           ->
///                   <-      accept
///   accept          ->                   theirs when it arrives: until then its end is not the link's
class ExtraStream : public StreamUser {
 public:
  enum class Side { dials, is_dialed };

  /// Called once, from the loop; not after close.
  using Done = std::function<void(bool accepted)>;

  struct Tie {
    Side side{};
    PeerId self;
    std::uint64_t nonce = 0;
  };

  // owners of the stream: see stream.h
  ExtraStream(const Tie& tie, std::shared_ptr<Stream> stream, Done done);

  /// Fails if it is not decided yet.
  void give_up();

  /// Without a word.
  void close();

  LinkBytes bytes() const;

  std::shared_ptr<Stream> release() { return std::move(stream_); }  // owners: see stream.h

  void on_frame(Stream& stream, Frame frame) override;

  void on_room(Stream&) override {}

  void on_end(Stream& stream, const std::string& why) override;

 private:
  void say(Verdict verdict);
  void decide(bool accepted);

  Tie tie_;
  std::shared_ptr<Stream> stream_;  // owners: see stream.h
  Done done_;                       // empty once it was called
};

}  // namespace tw::host
