// SPDX-License-Identifier: Apache-2.0
#include "base/digest.h"

#include <fmt/format.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // XXH3_128bits picks its kernel at run time: 47 instead of 12 GB/s
#else
#include <xxhash.h>
#endif

namespace tw {

Digest digest_of(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

Digest digest_of(std::span<const float> values) { return digest_of(std::as_bytes(values)); }

Digest digest_of(const std::string& text) { return digest_of(std::as_bytes(std::span(text))); }

std::string to_string(const Digest& digest) { return fmt::format("{:016x}{:016x}", digest.high, digest.low); }

}  // namespace tw
