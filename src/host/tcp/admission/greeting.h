// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/blob.h"
#include "base/ids.h"
#include "base/result.h"
#include "world/network.h"

namespace tw::host {

enum class StreamKind : std::uint8_t { control = 1, bulk = 2 };

enum class Verdict : std::uint8_t {
  greet = 1,      ///< the sender introduces itself (control: its hello is the next frame)
  accept = 2,     ///< the sender wants the link (control), the stream belongs to it (bulk)
  refuse = 3,     ///< for the reason that is told
  duplicate = 4,  ///< there is a link already, or another one on its way
};

/// Exchanged by the ends of a stream before messages. The nonce is drawn by the dialer and ties the bulk
/// streams of a link to its control stream.
struct Greeting {
  StreamKind kind{};
  Verdict verdict{};
  PeerId sender;
  std::uint64_t nonce = 0;
  world::Refusal reason{};

  bool operator==(const Greeting&) const = default;
};

/// Head: kind u8, verdict u8, sender u64, nonce u64, of the reason code u8, peer u64, place u32;
/// little-endian. Payload: words of the reason, cut at 4 KiB.
Frame encode_greeting(const Greeting& greeting);

/// Control characters in the words come out as '?': it is shown to users.
Result<Greeting> decode_greeting(const Frame& frame);

}  // namespace tw::host
