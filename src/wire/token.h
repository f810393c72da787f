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

/// What the holder of a token may do.
enum class Role : std::uint8_t {
  peer = 1,      ///< train, on a machine that may vanish
  anchor = 2,    ///< train, on a machine that stays
  observer = 3,  ///< see the run (docs/watch.md): no peer takes its connections
};

/// "peer", "anchor", "observer".
const char* name_of(Role role);

/// What it takes to be a peer of a run: where the others are, how to know them, and the proof for them.
/// A secret: its holder can take part.
struct Token {
  using Key = std::array<std::byte, 32>;  ///< Ed25519

  std::string run;  ///< its name, for people
  Key run_key{};    ///< public: signs the certificates of all peers, and so is the identity of the run
  Role role = Role::peer;
  std::int64_t expires_unix_s = 0;
  std::vector<std::string> addresses;    ///< of peers
  std::vector<std::byte> certificate{};  ///< of the holder (X.509, DER)
  Key secret{};                          ///< private key of the certificate

  bool operator==(const Token&) const = default;
};

/// The run in messages: its name and the beginning of its key.
std::string run_of(const Token& token);

/// One word of letters, digits, - and _, with a version and a checksum in it.
std::string to_text(const Token& token);

/// Blanks and line ends around it are skipped. The error says what is wrong, torn or mistyped among others,
/// and shows nothing of the token.
Result<Token> token_in(const std::string& text);

}  // namespace tw::wire
