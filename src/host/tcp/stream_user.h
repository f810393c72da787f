// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/blob.h"

namespace tw::host {

class Stream;

/// The listener of a stream. Calls come on the loop thread, none from inside a call of Stream.
class StreamUser {
 public:
  virtual ~StreamUser() = default;

  virtual void on_frame(Stream& stream, Frame frame) = 0;

  /// Bytes left the queue.
  virtual void on_room(Stream& stream) = 0;

  /// The stream is closed: by the other side, by an error, or because its bytes are invalid. The last call.
  virtual void on_end(Stream& stream, const std::string& why) = 0;
};

}  // namespace tw::host
