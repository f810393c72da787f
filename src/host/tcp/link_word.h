// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/blob.h"
#include "base/result.h"

namespace tw::host {

/// A word between the two ends of a link, over its control stream and between messages: a frame without a
/// head, unlike any message.
struct LinkWord {
  enum class Kind : std::uint8_t {
    grant = 1,    ///< value: bulk bytes that may be sent since the link was opened (credit.h)
    streams = 2,  ///< value: the data streams that the sender wants (it cannot dial them itself)
  };

  Kind kind{};
  std::uint64_t value = 0;

  bool operator==(const LinkWord&) const = default;
};

inline bool is_link_word(const Frame& frame) { return frame.head.empty(); }

Frame encode_link_word(const LinkWord& word);
Result<LinkWord> decode_link_word(const Frame& frame);

}  // namespace tw::host
