// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "codec/codec.h"

namespace tw::measure {

/// One process of a measurement: `tw bench peer` and the options that each of them is given.
struct BenchPeer {
  std::uint64_t id = 0;
  std::uint64_t peers = 0;  ///< that the run waits for
  std::uint64_t bytes = 0;  ///< of the vector
  codec::Codec codec = codec::Codec::fp32;
  Round rounds = 0;
  std::string out;  ///< folder of the event log
  std::string listen;
};

/// "bench", "peer", "--id", ...: the words that follow the program, then `more`.
std::vector<std::string> words_of(const BenchPeer& peer, const std::vector<std::string>& more);

}  // namespace tw::measure
