// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// Limits of what comes over the wire: sizes, lengths of texts, and how many of a thing a message may name.
/// Decoders refuse what is beyond the limits of frames, tokens and texts; swarm/ and average/ refuse a
/// message that names more than a round can have.
namespace tw::wire {

inline constexpr std::uint32_t kProtocolVersion = 25;

// ---- frames: refused before anything is allocated for them
inline constexpr std::size_t kMaxHeadBytes = 1 << 20;
inline constexpr std::size_t kMaxPayloadBytes = 1 << 20;

// ---- texts
inline constexpr std::uint32_t kMostMessageTextBytes = 4096;  ///< any text of a message
inline constexpr std::size_t kMostFacts = 4096;               ///< of a run, in a hello
inline constexpr std::size_t kMostSiteBytes = 64;             ///< name of a site (provider:region:zone)
inline constexpr std::size_t kMostAddressBytes = 260;  ///< a host name (RFC 1035: 253), a colon, a port

// ---- what a round can have
inline constexpr std::uint32_t kLeaseSlots = 48;  ///< slots of a peer that leases go to; each costs a vector
/// With overlap, slots from here on are for leases after the call: their sums are of the parameters after the
/// late update, and no record has them beside others.
inline constexpr std::uint32_t kLateSlot = 32;

inline constexpr std::uint32_t kMostSlots = 64;  ///< with those for sums that peers which left handed over
inline constexpr std::size_t kMostSites = 256;   ///< sites of a plan; each costs a table of owners
inline constexpr double kMostBytesPerS = 1e12;   ///< no peer or link is faster
inline constexpr std::size_t kMostFailureBytes = 1024;  ///< why samples cannot be computed
inline constexpr std::size_t kMostSlowPairs = 64;       ///< pairs of a peer, slower than its bandwidth

// ---- what a peer tells of itself once a second
inline constexpr std::size_t kMostRowText = 200;    ///< any text
inline constexpr std::size_t kMostRows = 32;        ///< any list
inline constexpr std::size_t kMostToldRounds = 16;  ///< the last ones
inline constexpr std::size_t kMostLeftOut = 8;      ///< of a round
inline constexpr std::size_t kMostWhyBytes = 80;    ///< of each that was left out

// ---- tokens and announcements
inline constexpr std::size_t kMostTokenAddresses = 16;
inline constexpr std::size_t kMostTokenText = 255;  ///< bytes of the name, and of each address
inline constexpr std::size_t kMostTokenCharacters = 16384;
inline constexpr std::size_t kMostCertificateBytes = 2048;
inline constexpr std::size_t kMostAnnouncementBytes = 4096;

// ---- the greeting of a connection, before either side knows the other
inline constexpr std::size_t kMostGreetingBytes = 64 << 10;  ///< head, and payload
inline constexpr std::size_t kMostReasonBytes = 4 << 10;     ///< text of a refusal
inline constexpr std::size_t kMostVerdictBytes = 1 << 10;    ///< what one side of TLS objects to the other

}  // namespace tw::wire
