// SPDX-License-Identifier: Apache-2.0
#include "data/safetensors.h"

#include <gmock/gmock.h>

#include <span>

namespace tw::data {
namespace {

using testing::ElementsAre;
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
  EXPECT_THAT(tensors_in_layout("buffer: n () int64\n").value(), ElementsAre(TensorShape{"n", {}, true}));
  const auto shared = tensors_in_layout("led: samples () float32\nbuffer: samples (2) float32\n").value();
  EXPECT_THAT(shared, ElementsAre(TensorShape{"samples", {}, false, true}, TensorShape{"samples", {2}}));
  EXPECT_EQ(safetensors_header(shared, {}), safetensors_header({{"samples", {2}}}, {}));
  EXPECT_THAT(tensors_in_layout("updates: updates (2,) float32\n").value(),
              ElementsAre(TensorShape{"updates", {2}, false, true}));
  EXPECT_THAT(tensors_in_layout("").value(), IsEmpty());
  EXPECT_EQ(tensors_in_layout("group 0: w (x) float32").error().message,
            "expected NAME (SIZES) DTYPE, found group 0: w (x) float32");
  EXPECT_EQ(tensors_in_layout("group 0: w (1,) f\ngroup 1: w (2,) f").error().message,
            "two tensors have the name w");
}

/// A file with this header and this many data bytes.
std::string file_of(const std::string& header, std::size_t bytes) {
  std::string length;
  for (std::size_t i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> (8 * i));
  return length + header + std::string(bytes, '\0');
}

Result<SafetensorsHeader> read_header_of(const std::string& file) {
  return read_safetensors_header(std::as_bytes(std::span(file)));
}

TEST(Safetensors, are_read_as_they_are_written) {
  const std::string header =
      safetensors_header({{"b", {2, 3}}, {"n", {}, true}, {"a", {2}}}, {{"round", "7"}});
  const auto found = read_header_of(header + std::string(40, '\0'));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found.value().bytes, header.size());
  EXPECT_THAT(found.value().tensors,
              ElementsAre(StoredTensor{"b", "F32", {2, 3}, 0, 24}, StoredTensor{"n", "I64", {}, 24, 8},
                          StoredTensor{"a", "F32", {2}, 32, 8}));
  // Other writers use any order of names, trailing spaces, and tensors without elements.
  const auto other = read_header_of(file_of(R"({"x":{"dtype":"BF16","shape":[1],"data_offsets":[2,4]},)"
                                            R"("y":{"dtype":"F16","shape":[1],"data_offsets":[0,2]},)"
                                            R"("z":{"dtype":"F32","shape":[0,9],"data_offsets":[2,2]}}   )",
                                            4));
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(other.value().tensors.front().name, "y");
}

TEST(Safetensors, that_are_damaged_are_told_with_what_was_expected) {
  const auto cause = [](const std::string& file) {
    const auto found = read_header_of(file);
    return found ? "none" : found.error().message;
  };
  const auto tensor = [&](const std::string& facts, std::size_t bytes = 4) {
    return cause(file_of("{\"w\":{" + facts + "}}", bytes));
  };
  EXPECT_EQ(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), "none");
  EXPECT_EQ(cause("1234567"), "not safetensors: expected at least 8 bytes, found 7");
  EXPECT_THAT(cause("PK\3\4 some other file"), StartsWith("not safetensors, or truncated: its header has "));
  EXPECT_EQ(cause(file_of("{}", 0).substr(0, 9)),
            "not safetensors, or truncated: its header has 2 bytes, expected at most 1");
  EXPECT_EQ(cause(file_of("[]", 0)), "not safetensors: its header does not begin with {");
  EXPECT_EQ(cause(file_of("{\"w\":", 0)), "its header is no JSON object");
  EXPECT_EQ(cause(file_of(R"({"w":1})", 0)), "tensor w: expected dtype, shape and data_offsets");
  EXPECT_EQ(tensor(R"("shape":[1],"data_offsets":[0,4])"), "tensor w: expected a dtype");
  EXPECT_EQ(tensor(R"("dtype":"F31","shape":[1],"data_offsets":[0,4])"),
            "tensor w: expected a dtype of safetensors, found F31");
  EXPECT_EQ(tensor(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"),
            "tensor w: expected a shape of whole numbers");
  EXPECT_EQ(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0])"),
            "tensor w: expected data_offsets of two whole numbers");
  EXPECT_EQ(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"),
            "tensor w: expected 8 bytes for F32 of (2), found data_offsets 0 and 4");
  EXPECT_THAT(tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])"),
              StartsWith("tensor w: expected no more than a file holds bytes for F32"));
  EXPECT_EQ(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])", 5),
            "its tensors have 4 bytes, while 5 follow the header");
}

TEST(Safetensors, whose_tensors_leave_gaps_overlap_or_share_a_name_are_refused) {
  const auto two = [](const std::string& second, const std::string& offsets, std::size_t bytes) {
    const auto found =
        read_header_of(file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},")" + second +
                                   R"(":{"dtype":"F32","shape":[1],"data_offsets":)" + offsets + "}}",
                               bytes));
    return found ? "none" : found.error().message;
  };
  EXPECT_EQ(two("b", "[4,8]", 8), "none");
  EXPECT_EQ(two("b", "[8,12]", 12),
            "tensor b: expected to begin at byte 4 of the data (no gaps, no overlaps), found 8");
  EXPECT_EQ(two("b", "[2,6]", 6),
            "tensor b: expected to begin at byte 4 of the data (no gaps, no overlaps), found 2");
  EXPECT_EQ(two("a", "[4,8]", 8), "two values have the name a");
  EXPECT_EQ(read_header_of(file_of(R"({"w":{"a":[[[]]]}})", 0)).error().message,
            "values are nested deeper than in safetensors");
}

}  // namespace
}  // namespace tw::data
