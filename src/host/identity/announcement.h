// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/ids.h"
#include "base/result.h"
#include "host/identity/tls.h"
#include "wire/token.h"

namespace tw::host {

/// "This peer of the run can be reached at this address, until then."
struct Announcement {
  Digest training;  ///< what the run trains: wire::Hello::run
  PeerId peer;
  std::string address;
  std::int64_t until_unix_s = 0;

  bool operator==(const Announcement&) const = default;
};

/// With the certificate of the token and a signature: it lies where others can write, too. The error: it
/// would be larger than others read.
Result<std::vector<std::byte>> sign_announcement(const wire::Token& token, const Announcement& announcement);

/// The error says why it does not count, after its name: "has expired".
Result<Announcement> read_announcement(std::span<const std::byte> bytes, const Tls& tls,
                                       std::int64_t now_unix_s);

}  // namespace tw::host
