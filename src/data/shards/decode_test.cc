// SPDX-License-Identifier: Apache-2.0
#include "data/shards/decode.h"

#include <gmock/gmock.h>

#include <set>

namespace tw::data {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

/// 2 x 2: red, green; blue, white.
const std::string kPng = from_hex(
    "89504e470d0a1a0a0000000d4948445200000002000000020802000000fdd49a730000001249444154789c63f8cfc0c0"
    "00c20cff8100001fee05fb0bd9688b0000000049454e44ae426082");

/// 32 x 16, grey: the left half is black, the right one white.
const std::string kJpeg = from_hex(
    "ffd8ffe000104a46494600010100000100010000ffdb004300100b0c0e0c0a100e0d0e1211101318281a181616183123"
    "251d283a333d3c3933383740485c4e404457453738506d51575f626768673e4d71797064785c656763ffc0000b080010"
    "002001011100ffc4001f0000010501010101010100000000000000000102030405060708090a0bffc400b51000020103"
    "03020403050504040000017d01020300041105122131410613516107227114328191a1082342b1c11552d1f024336272"
    "82090a161718191a25262728292a3435363738393a434445464748494a535455565758595a636465666768696a737475"
    "767778797a838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9"
    "cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9faffda0008010100003f00f3fa2be80a2be7fa"
    "2be80a2bffd9");

const std::vector<float>& floats(const Array& array) { return std::get<std::vector<float>>(array.values); }

std::string npy(const std::string& type, const std::string& shape, const std::string& values) {
  const std::string head = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(head.size()) + '\0' + head + values;
}

TEST(Pictures, of_png_are_channels_of_rows) {
  const auto picture = decode_field("png", kPng, FieldUse::input, {}, 0);
  ASSERT_TRUE(picture) << picture.error().message;
  EXPECT_THAT(picture.value().shape, ElementsAre(3, 2, 2));
  EXPECT_THAT(floats(picture.value()), ElementsAre(1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1));
  const auto grey = decode_field("seg.png", kPng, FieldUse::input, {.channels = 1}, 0);
  EXPECT_THAT(grey.value().shape, ElementsAre(1, 2, 2));
}

TEST(Pictures, of_jpeg_are_cut_to_their_middle_and_made_smaller) {
  const auto whole = decode_field("jpg", kJpeg, FieldUse::input, {}, 0);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_THAT(whole.value().shape, ElementsAre(1, 16, 32));
  const auto small = decode_field("jpg", kJpeg, FieldUse::input, {.size = 4, .channels = 3}, 0);
  EXPECT_THAT(small.value().shape, ElementsAre(3, 4, 4));
  const std::vector<float>& values = floats(small.value());
  EXPECT_THAT(values[0], FloatNear(0, 0.05F));
  EXPECT_THAT(values[3], FloatNear(1, 0.05F));
}

TEST(Pictures, are_cut_and_mirrored_by_the_number_of_the_sample_alone) {
  const PictureOptions options{.size = 4, .random_crop = true, .flip = true};
  std::set<std::vector<float>> seen;
  bool mirrored = false;
  for (std::uint64_t number = 0; number < 20; ++number) {
    const auto once = decode_field("jpg", kJpeg, FieldUse::input, options, number);
    EXPECT_EQ(once.value(), decode_field("jpg", kJpeg, FieldUse::input, options, number).value());
    seen.insert(floats(once.value()));
    mirrored = mirrored || floats(once.value())[0] > floats(once.value())[3] + 0.5F;
  }
  EXPECT_GT(seen.size(), 5U);
  EXPECT_TRUE(mirrored);
}

TEST(Pictures, show_a_part_inside_them) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Rectangle part = part_of(300, 200, {.size = 10, .random_crop = true}, seed);
    ASSERT_GE(part.x, 0);
    ASSERT_LE(part.x + part.width, 300);
    ASSERT_LE(part.y + part.height, 200);
    ASSERT_GE(part.width * part.height, 0.07 * 300 * 200);
  }
  EXPECT_EQ(part_of(300, 200, {.size = 10}, 1), (Rectangle{50, 0, 200, 200}));
}

TEST(Pictures, that_are_broken_are_an_error) {
  EXPECT_THAT(decode_field("jpg", "no", FieldUse::input, {}, 0).error().message, HasSubstr("no JPEG"));
  EXPECT_THAT(decode_field("jpg", kJpeg.substr(0, 100), FieldUse::input, {}, 0).error().message,
              HasSubstr("no JPEG"));
  EXPECT_THAT(decode_field("png", kPng.substr(0, 50), FieldUse::input, {}, 0).error().message,
              HasSubstr("no PNG"));
  EXPECT_THAT(decode_field("png", "", FieldUse::input, {}, 0).error().message, HasSubstr("no PNG"));
}

TEST(Npy, becomes_floats_and_integers) {
  const auto bytes = npy("|u1", "(2, 1)", std::string("\xff\x00", 2));
  const auto input = decode_npy(bytes, FieldUse::input);
  ASSERT_TRUE(input) << input.error().message;
  EXPECT_EQ(input.value(), (Array{{2, 1}, std::vector<float>{1, 0}}));
  EXPECT_EQ(decode_npy(bytes, FieldUse::target).value(), (Array{{2, 1}, std::vector<std::int64_t>{255, 0}}));
  EXPECT_EQ(decode_npy(npy("<i2", "()", std::string("\xfe\xff", 2)), FieldUse::input).value(),
            (Array{{}, std::vector<std::int64_t>{-2}}));
  EXPECT_EQ(
      decode_npy(npy("<f2", "(3,)", std::string("\x00\x3c\x00\xc0\x00\x38", 6)), FieldUse::input).value(),
      (Array{{3}, std::vector<float>{1, -2, 0.5F}}));
}

TEST(Npy, that_is_broken_is_an_error) {
  EXPECT_FALSE(decode_npy("", FieldUse::input));
  EXPECT_FALSE(decode_npy(npy("", "(2,)", "1234"), FieldUse::input));
  EXPECT_THAT(decode_npy(npy("<f4", "(2,)", "1234"), FieldUse::input).error().message, HasSubstr("cut off"));
  EXPECT_THAT(decode_npy(npy("<f4", "(99999999999, 99999999999)", "1234"), FieldUse::input).error().message,
              HasSubstr("cut off"));
  EXPECT_THAT(decode_npy(npy(">f4", "(1,)", "1234"), FieldUse::input).error().message, HasSubstr(">f4"));
  EXPECT_THAT(decode_npy(npy("<c8", "(1,)", "12345678"), FieldUse::input).error().message, HasSubstr("<c8"));
}

TEST(Numbers, are_whole_where_all_are) {
  EXPECT_EQ(decode_field("cls", " 7\n", FieldUse::target, {}, 0).value(),
            (Array{{}, std::vector<std::int64_t>{7}}));
  EXPECT_EQ(decode_field("json", "[[1, 2], [3, 4.5]]", FieldUse::target, {}, 0).value(),
            (Array{{2, 2}, std::vector<float>{1, 2, 3, 4.5F}}));
  EXPECT_EQ(decode_field("txt", "1 2\n 3\n", FieldUse::target, {}, 0).value(),
            (Array{{3}, std::vector<std::int64_t>{1, 2, 3}}));
}

TEST(Numbers, that_are_none_are_an_error) {
  EXPECT_EQ(decode_field("cls", "cat", FieldUse::target, {}, 0).error().message,
            "expected a whole number, found \"cat\"");
  for (const char* bad : {"{}", "[1, [2]]", "[[1], [2, 3]]", "[[[[[[[[[1]]]]]]]]]", "", "nul", "\"a\""})
    EXPECT_FALSE(decode_field("json", bad, FieldUse::target, {}, 0)) << bad;
  EXPECT_THAT(decode_field("txt", "a caption", FieldUse::target, {}, 0).error().message,
              HasSubstr("expected numbers"));
  EXPECT_THAT(decode_field("mp4", "", FieldUse::input, {}, 0).error().message,
              HasSubstr("no decoder for .mp4"));
}

}  // namespace
}  // namespace tw::data
