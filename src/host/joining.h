// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "host/greeting.h"
#include "host/stream_user.h"
#include "host/traffic.h"

namespace tw {

/// A connection that was dialed to become one more data stream of an open link: it greets with the nonce of
/// the link and waits to be accepted.
class Joining : public StreamUser {
 public:
  /// Called once, from the loop; not after close.
  using Done = std::function<void(bool accepted)>;

  // owners of the stream: see stream.h
  Joining(PeerId self, std::uint64_t nonce, std::shared_ptr<Stream> stream, Done done);

  /// Fails, unless it is decided.
  void give_up();

  /// Without a word.
  void close();

  LinkBytes bytes() const;

  std::shared_ptr<Stream> release() { return std::move(stream_); }  // owners: see stream.h

  void on_frame(Stream& stream, Frame frame) override;

  void on_room(Stream&) override {}

  void on_end(Stream& stream, const std::string& why) override;

 private:
  void decide(bool accepted);

  std::shared_ptr<Stream> stream_;  // owners: see stream.h
  Done done_;                       // empty once it was called
};

}  // namespace tw
