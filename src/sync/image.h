// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/blob.h"
#include "base/digest.h"
#include "base/result.h"
#include "wire/messages.h"

namespace tw::sync {

/// A frozen state after a record: parameters, then the optimizer's buffers, as raw little-endian floats. Made
/// once, then shared by checkpoint and donor; immutable.
struct StateImage {
  wire::Record record;
  Digest parameters;            ///< of the parameters only
  std::vector<Blob> chunks;     ///< chunk_bytes each, the last one may be shorter
  std::vector<Digest> digests;  ///< of each chunk

  std::uint64_t bytes() const;
};

/// Copies the parts, one after the other, into chunks. parts[0] are the parameters.
StateImage freeze(wire::Record record, std::span<const std::span<const float>> parts,
                  std::uint64_t chunk_bytes);

/// The inverse: fills parts (their total size must be that of the image) and checks the digest of the
/// parameters.
Status thaw(const StateImage& image, std::span<const std::span<float>> parts);

}  // namespace tw::sync
