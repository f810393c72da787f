// SPDX-License-Identifier: Apache-2.0
#include "codec/codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "average/reduction/weighted_sum.h"
#include "base/check.h"
#include "codec/kernels.h"
#include "fuzz/target.h"

namespace tw::fuzz {
namespace {

using codec::Codec;
using Bytes = std::vector<std::byte>;
using Values = std::vector<float>;

/// Bits, but that any NaN is like another: which one a sum of two is, the processor may choose.
bool same(const Values& a, const Values& b) {
  return std::ranges::equal(a, b, [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) ||
           (std::isnan(x) && std::isnan(y));
  });
}

/// All kernels read and write alike.
void kernels_agree(Codec codec, const Bytes& bytes, const Values& values, float scale) {
  const codec::Kernel& judge = codec::reference_kernels().of(codec);
  Values expected(values.size()), sum(values.size(), 0.1F);
  const bool finite = judge.decode(bytes.data(), values.size(), expected.data());
  judge.add(bytes.data(), values.size(), scale, sum.data());
  Bytes encoded(bytes.size());
  const bool addable = judge.encode(values.data(), values.size(), scale, encoded.data());
  for (const codec::KernelSet& set : codec::kernel_sets()) {
    const codec::Kernel& kernel = set.of(codec);
    Values read(values.size()), added(values.size(), 0.1F);
    TW_CHECK(kernel.decode(bytes.data(), values.size(), read.data()) == finite);
    TW_CHECK(same(read, expected));
    kernel.add(bytes.data(), values.size(), scale, added.data());
    TW_CHECK(same(added, sum));
    Bytes written(bytes.size());
    TW_CHECK(kernel.encode(values.data(), values.size(), scale, written.data()) == addable);
    TW_CHECK(written == encoded);
    TW_CHECK(kernel.is_addable(encoded.data(), values.size()) == addable);
  }
}

bool is_float(Codec codec) { return codec != Codec::int8 && codec != Codec::int4; }

/// What is written is read again as it was.
void encoding_lasts(Codec codec, const Bytes& bytes, Values values) {
  Bytes again(bytes.size());
  encode(codec, values, 1.0F, again);
  if (is_float(codec)) {
    TW_CHECK(again == bytes);
  } else {  // no encoder writes any block as it stands there; its own stay
    TW_CHECK(decode(codec, again, values));
    Bytes once_more(bytes.size());
    encode(codec, values, 1.0F, once_more);
    TW_CHECK(once_more == again);
  }
  TW_CHECK(std::isfinite(average::norm(codec, bytes)));
}

void decoder(Codec codec, Input& input) {
  const float scale = input.one_in(2) ? 1.0F : 1.0F / static_cast<float>(1 + input.byte());
  Bytes bytes = input.bytes(std::min<std::size_t>(input.rest().size(), 8192));
  (void)is_addable(codec, bytes);
  Values values(values_in(codec, bytes.size()));
  bytes.resize(encoded_bytes(codec, values.size()));
  const bool finite = decode(codec, bytes, values);
  TW_CHECK(finite == std::ranges::all_of(values, [](float v) { return std::isfinite(v); }));
  TW_CHECK(finite || !is_addable(codec, bytes));
  if (finite) encoding_lasts(codec, bytes, values);
  if (is_addable(codec, bytes)) {  // any mean of such values can be sent and read
    const Codec out = codec_of_mean(codec);
    Values read(values.size());
    Bytes encoded(encoded_bytes(out, read.size()));
    const std::vector<average::Addend> addends = {{0.25F, bytes}, {0.75F, bytes}};
    const Digest digest = reduce_segment(codec, addends, read.size(), encoded);
    TW_CHECK(decode(out, encoded, read) && digest == digest_of(std::span<const float>(read)));
    TW_CHECK(digest == average::digest_of_decoded(out, encoded, read.size()));
  }
  kernels_agree(codec, bytes, values, scale);
}

}  // namespace

void fp32(Input& input) { decoder(Codec::fp32, input); }

void fp16(Input& input) { decoder(Codec::fp16, input); }

void bf16(Input& input) { decoder(Codec::bf16, input); }

void int8(Input& input) { decoder(Codec::int8, input); }

void int4(Input& input) { decoder(Codec::int4, input); }

}  // namespace tw::fuzz
