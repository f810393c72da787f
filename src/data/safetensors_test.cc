// SPDX-License-Identifier: Apache-2.0
#include "data/safetensors.h"

#include <gmock/gmock.h>

namespace tw::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(Safetensors, begin_with_the_length_of_a_header_that_is_aligned) {
  const std::string header = safetensors_header({{"a", {2, 3}}, {"b", {}}}, {{"round", "7"}});
  ASSERT_EQ(header.size() % 8, 0U);
  EXPECT_EQ(static_cast<unsigned char>(header[0]) + 256U * static_cast<unsigned char>(header[1]),
            header.size() - 8);
  EXPECT_THAT(header.substr(8), StartsWith(R"({"__metadata__":{"round":"7"},)"
                                           R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                                           R"("b":{"dtype":"F32","shape":[],"data_offsets":[24,28]}})"));
}

TEST(Safetensors, have_the_tensors_that_a_layout_names) {
  const auto tensors = tensors_in_layout(
      "optimizer AdamW\ngroup 0: fc.weight (10, 20) float32\ngroup 1: fc (old) bias (10,) bfloat16\n"
      "buffer: mean () float32\nfrozen: head (3, 4) float32 12ab\n");
  ASSERT_TRUE(tensors) << tensors.error().message;
  EXPECT_THAT(tensors.value(), ElementsAre(TensorShape{"fc.weight", {10, 20}},
                                           TensorShape{"fc (old) bias", {10}}, TensorShape{"mean", {}}));
  EXPECT_THAT(tensors_in_layout("").value(), IsEmpty());
  EXPECT_EQ(tensors_in_layout("group 0: w (x) float32").error().message,
            "expected NAME (SIZES) DTYPE, found group 0: w (x) float32");
  EXPECT_EQ(tensors_in_layout("group 0: w (1,) f\ngroup 1: w (2,) f").error().message,
            "two tensors have the name w");
}

}  // namespace
}  // namespace tw::data
