// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/blob.h"
#include "base/result.h"
#include "wire/limits.h"
#include "wire/messages.h"

namespace tw::wire {

/// Little-endian, one type byte first. The payload of bulk messages is passed on, not copied.
Frame encode(const Message& message);

/// The message, or what is wrong with the bytes: unknown type, truncated, too long, trailing bytes, a count
/// beyond what the bytes can hold, a value out of its range.
Result<Message> decode(const Frame& frame);

/// The protocol version that a Hello names, even if this version cannot read the rest; nothing for any other
/// message.
std::optional<std::uint32_t> protocol_of(const Frame& hello);

/// Digest of the record's encoding: the link of the chain.
Digest digest_of(const Record& record);

/// Names the contributions of a mean, in order and by group (group numbers matter only for their order); the
/// same set gives the same mean, bit for bit.
std::uint64_t contribution_set(const Record& record);

/// The same for the mean of one group, whatever its number is.
std::uint64_t contribution_set(const Record& record, std::uint32_t group);

/// "Heartbeat", "Plan" ... for logs.
const char* name_of(const Message& message);

}  // namespace tw::wire
