// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "wire/limits.h"

namespace tw::wire {

/// Rights of the holder of a token.
enum class Role : std::uint8_t {
  peer = 1,      ///< train, on a machine that may vanish
  anchor = 2,    ///< train, on a machine that stays
  observer = 3,  ///< see the run (docs/watch.md): no peer accepts its connections
};

/// "peer", "anchor", "observer".
const char* name_of(Role role);

/// All that a process needs to be a peer of a run: addresses of others, keys to recognise them, and proof of
/// its own. A secret: its holder can take part.
struct Token {
  using Key = std::array<std::byte, 32>;  ///< Ed25519

  std::string run;  ///< its name, for people
  Key run_key{};    ///< public; signs the certificates of all peers, and so identifies the run
  Role role = Role::peer;
  std::int64_t expires_unix_s = 0;
  std::vector<std::string> addresses;    ///< of peers
  std::vector<std::byte> certificate{};  ///< of the holder (X.509, DER)
  Key secret{};                          ///< private key of the certificate

  bool operator==(const Token&) const = default;
};

/// A peer that announces its address does so for this time: host/identity/announcement.h.
inline constexpr std::int64_t kAnnouncementLasts_s = 600;
inline constexpr std::int64_t kClocksDiffer_s = 300;  ///< of two machines, at most

/// The run's name in messages: its name and the beginning of its key.
std::string run_of(const Token& token);

/// One word of letters, digits, - and _, including a version and a checksum.
std::string to_text(const Token& token);

/// Skips blanks and line ends around the token. The error says what is wrong, such as a torn or mistyped
/// token, and shows nothing of the token.
Result<Token> token_in(const std::string& text);

}  // namespace tw::wire
