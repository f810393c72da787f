// SPDX-License-Identifier: Apache-2.0
#include "codec/codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "average/weighted_sum.h"
#include "base/check.h"
#include "codec/fp16.h"
#include "fuzz/target.h"

namespace tw::fuzz {
namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// All kernels read and write alike.
void kernels_agree(const std::vector<std::byte>& bytes, const std::vector<float>& values, float scale) {
  const Fp16Kernel judge = fp16_reference();
  const std::size_t halves = bytes.size() / 2;
  std::vector<float> expected(halves);
  const bool finite = judge.decode(bytes.data(), halves, expected.data());
  std::vector<std::byte> encoded(2 * values.size());
  judge.encode(values.data(), values.size(), scale, encoded.data());
  for (const Fp16Kernel& kernel : fp16_kernels()) {
    std::vector<float> read(halves);
    TW_CHECK(kernel.decode(bytes.data(), halves, read.data()) == finite);
    TW_CHECK(same_bits(read, expected));
    std::vector<std::byte> written(encoded.size());
    kernel.encode(values.data(), values.size(), scale, written.data());
    TW_CHECK(written == encoded);
  }
}

}  // namespace

void codec(Input& input) {
  const Codec codec = input.one_in(2) ? Codec::fp32 : Codec::fp16;
  const float scale = input.one_in(2) ? 1.0F : 1.0F / static_cast<float>(1 + input.byte());
  const std::size_t width = encoded_bytes(codec, 1);
  std::vector<std::byte> bytes = input.bytes(std::min<std::size_t>(input.rest().size(), 8192));
  bytes.resize(bytes.size() / width * width);
  std::vector<float> values(bytes.size() / width);
  const bool finite = decode(codec, bytes, values);
  TW_CHECK(finite == std::ranges::all_of(values, [](float v) { return std::isfinite(v); }));
  TW_CHECK(finite || !is_addable(codec, bytes));
  std::vector<std::byte> again(bytes.size());
  encode(codec, values, 1.0F, again);
  if (finite) {
    TW_CHECK(again == bytes);
    TW_CHECK(std::isfinite(norm(codec, bytes)));
  }
  if (is_addable(codec, bytes)) {  // any mean of such values can be sent and read
    std::vector<float> mean(values.size());
    const std::vector<Addend> addends = {{0.25F, bytes}, {0.75F, bytes}};
    reduce_segment(codec, addends, again, mean);
    TW_CHECK(decode(codec, again, values) && same_bits(values, mean));
  }
  kernels_agree(bytes, values, scale);
}

}  // namespace tw::fuzz
