// SPDX-License-Identifier: Apache-2.0
#include "base/digest.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace tw {

Digest digest_of(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

Digest digest_of(std::span<const float> values) { return digest_of(std::as_bytes(values)); }

Digest digest_of(const std::string& text) { return digest_of(std::as_bytes(std::span(text))); }

std::string to_string(const Digest& digest) { return fmt::format("{:016x}{:016x}", digest.high, digest.low); }

}  // namespace tw
