// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <string>

#include "base/check.h"
#include "base/digest.h"
#include "data/shards/shard_index.h"
#include "fuzz/target.h"

namespace tw::fuzz {

/// Any content behind a digest that is right.
void twi(Input& input) {
  const bool sealed = input.byte() % 4 != 0;
  const auto rest = input.rest();
  std::string bytes = sealed ? "TWINDEX1" : "";
  bytes.append(rest.begin(), rest.end());
  const Digest digest = digest_of(bytes);
  for (const std::uint64_t half : {digest.high, digest.low})
    for (unsigned shift = 0; sealed && shift < 64; shift += 8)
      bytes += static_cast<char>(half >> shift & 0xffU);
  const auto index = data::ShardIndex::decode(bytes);
  if (!index) return;
  const auto again = data::ShardIndex::decode(index.value().encode());
  TW_CHECK(again && again.value() == index.value());
  for (std::uint64_t i = 0; i < index.value().size(); ++i) {
    const auto sample = index.value().sample(i);
    const data::Shard& shard = index.value().shards().at(sample.shard);
    for (const data::FieldPlace& place : sample.fields) {
      TW_CHECK(place.offset <= shard.bytes && place.length <= shard.bytes - place.offset);
      TW_CHECK(place.name < index.value().field_names().size());
    }
  }
}

}  // namespace tw::fuzz
