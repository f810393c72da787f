// SPDX-License-Identifier: Apache-2.0
#include "data/shards/decode.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <limits>

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

/// 3 x 1, grey of 16 bits: 0, 0x40ff, 0xffff.
const std::string kGrey16 = from_hex(
    "89504e470d0a1a0a0000000d49484452000000030000000110000000006e1b972b0000000f49444154789c63606070f8"
    "ffff3f000701033e1fdf2cd20000000049454e44ae426082");

/// 2 x 1 with alpha 0 and 128.
const std::string kRgba = from_hex(
    "89504e470d0a1a0a0000000d4948445200000002000000010806000000f4227f8a0000000f49444154789c63389162c4"
    "00c40d000f61033d574c39020000000049454e44ae426082");

/// 3 x 1, a palette of 2 colors, the first transparent; gAMA.
const std::string kPalette = from_hex(
    "89504e470d0a1a0a0000000d4948445200000003000000010203000000668efc270000000467414d41000186a031e896"
    "5f00000006504c5445c864320a141eb77aab510000000174524e530040e6d8660000000a49444154789c631000000012"
    "0011a556c74e0000000049454e44ae426082");

/// 4 x 1, grey of 2 bits: 0, 1, 2, 3; one is transparent; gAMA.
const std::string kGrey2 = from_hex(
    "89504e470d0a1a0a0000000d494844520000000400000001020000000096e748b00000000467414d41000186a031e896"
    "5f0000000274524e5300010194fdae0000000a49444154789c63900600001d001c8ef4f5210000000049454e44ae4260"
    "82");

/// 4 x 1, numbers of 2 bits in a palette of 2 colors: 0, 1, 0, 3.
const std::string kBeyondPalette = from_hex(
    "89504e470d0a1a0a0000000d49484452000000040000000102030000008452e75e00000006504c5445c864320a141eb7"
    "7aab510000000a49444154789c6310060000150014062ac6590000000049454e44ae426082");

/// 3 x 2, grey, interlaced.
const std::string kInterlaced = from_hex(
    "89504e470d0a1a0a0000000d4948445200000003000000020800000001cf1809500000001249444154789c63e0629063"
    "1061d030b2010002b200d31fd177570000000049454e44ae426082");

/// 8 x 8 of one color; ink as Adobe's programs write it.
const std::string kCmykJpeg = from_hex(
    "ffd8ffee000e41646f626500640000000000ffdb00430002010101010102010101020202020204030202020205040403"
    "04060506060605060606070908060709070606080b08090a0a0a0a0a06080b0c0b0a0c090a0a0affc000140800080008"
    "044311004d11005911004b1100ffc4001500010100000000000000000000000000000907ffc400141001000000000000"
    "00000000000000000000ffda000e0443004d0059004b00003f007f06dad8571fffd9");

/// 8 x 8 of one color.
const std::string kColorJpeg = from_hex(
    "ffd8ffe000104a46494600010100000100010000ffdb0043000201010101010201010102020202020403020202020504"
    "040304060506060605060606070908060709070606080b08090a0a0a0a0a06080b0c0b0a0c090a0a0affdb0043010202"
    "02020202050303050a0706070a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"
    "0a0a0a0a0a0a0a0a0a0a0a0a0a0affc00011080008000803012200021101031101ffc400150001010000000000000000"
    "0000000000000007ffc40014100100000000000000000000000000000000ffc400140101000000000000000000000000"
    "00000009ffc40014110100000000000000000000000000000000ffda000c03010002110311003f00aa003cc903ffd9");

const std::vector<float>& floats(const Array& array) { return std::get<std::vector<float>>(array.values); }

/// The first channels of the first pixels: all that differ in pictures of one color.
std::vector<int> pixels(const std::string& picture, std::uint32_t channels) {
  const auto array = decode_picture(picture, {.channels = channels});
  if (!array) return {};
  const std::size_t area = array.value().shape[1] * array.value().shape[2];
  const std::size_t step = area == 64 ? 64 : 1;  // a JPEG of one block, of one color
  std::vector<int> values;
  for (std::size_t i = 0; i < floats(array.value()).size(); i += step)
    values.push_back(static_cast<int>(std::lround(255 * floats(array.value())[i])));
  return values;
}

/// Empty: it can be decoded.
std::string why_not(const std::string& picture) {
  const auto array = decode_picture(picture, {});
  return array ? std::string() : array.error().message;
}

std::string npy(const std::string& type, const std::string& shape, const std::string& values,
                const std::string& fortran_order = "False") {
  const std::string head =
      "{'descr': '" + type + "', 'fortran_order': " + fortran_order + ", 'shape': " + shape + ", }";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(head.size()) + '\0' + head + values;
}

TEST(Pictures, of_png_are_channels_of_rows) {
  const auto picture = decode_field("png", kPng, {});
  ASSERT_TRUE(picture) << picture.error().message;
  EXPECT_THAT(picture.value().shape, ElementsAre(3, 2, 2));
  EXPECT_THAT(floats(picture.value()), ElementsAre(1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1));
  const auto grey = decode_field("seg.png", kPng, {.channels = 1});
  EXPECT_THAT(grey.value().shape, ElementsAre(1, 2, 2));
}

TEST(Pictures, of_jpeg_are_cut_to_their_middle_and_made_smaller) {
  const auto whole = decode_field("jpg", kJpeg, {});
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_THAT(whole.value().shape, ElementsAre(1, 16, 32));
  const auto small = decode_field("jpg", kJpeg, {.size = 4, .channels = 3});
  EXPECT_THAT(small.value().shape, ElementsAre(3, 4, 4));
  const std::vector<float>& values = floats(small.value());
  EXPECT_THAT(values[0], FloatNear(0, 0.05F));
  EXPECT_THAT(values[3], FloatNear(1, 0.05F));
}

TEST(Pictures, show_the_square_in_the_middle) {
  EXPECT_EQ(part_of(300, 200, {.size = 10}), (Rectangle{50, 0, 200, 200}));
  EXPECT_EQ(part_of(300, 200, {}), (Rectangle{0, 0, 300, 200}));
}

TEST(Pictures, have_the_pixels_of_Pillow) {
  EXPECT_THAT(pixels(kCmykJpeg, 3), ElementsAre(215, 46, 131)) << "ink of Adobe is inverted";
  EXPECT_THAT(pixels(kCmykJpeg, 1), ElementsAre(106));
  EXPECT_THAT(pixels(kColorJpeg, 3), ElementsAre(250, 121, 30));
  EXPECT_THAT(pixels(kColorJpeg, 1), ElementsAre(149));
  EXPECT_THAT(pixels(kGrey16, 1), ElementsAre(0, 0x40, 0xff)) << "the upper 8 of 16 bits";
  EXPECT_THAT(pixels(kRgba, 3), ElementsAre(200, 200, 100, 100, 50, 50)) << "without the transparency";
  EXPECT_THAT(pixels(kPalette, 0), ElementsAre(200, 10, 200, 100, 20, 100, 50, 30, 50)) << "without gamma";
  EXPECT_THAT(pixels(kGrey2, 0), ElementsAre(0, 85, 170, 255));
  EXPECT_THAT(pixels(kInterlaced, 0), ElementsAre(10, 20, 30, 40, 50, 60));
}

TEST(Pictures, that_are_broken_are_an_error) {
  EXPECT_THAT(why_not("no"), HasSubstr("no JPEG or PNG"));
  EXPECT_THAT(why_not(""), HasSubstr("an empty file"));
  for (const std::string& jpeg : {kJpeg, kColorJpeg, kCmykJpeg})
    for (std::size_t bytes = 2; bytes < jpeg.size(); bytes += 7)
      EXPECT_THAT(why_not(jpeg.substr(0, bytes)), HasSubstr("cut off")) << bytes;
  for (std::size_t bytes = 4; bytes < kPng.size(); ++bytes)
    EXPECT_THAT(why_not(kPng.substr(0, bytes)), HasSubstr("cut off")) << bytes;
  std::string early = kJpeg;  // the end comes before the pixels do
  early.replace(early.size() - 8, 2, "\xff\xd9");
  EXPECT_THAT(why_not(early), HasSubstr("premature end of data segment"));
  EXPECT_EQ(why_not(kBeyondPalette), "no PNG: a pixel has color 3 of a palette of 2");
}

TEST(Pictures, with_a_wrong_checksum_are_an_error_and_with_bytes_behind_the_end_none) {
  EXPECT_EQ(why_not(kPng + "more"), "");
  EXPECT_EQ(why_not(kJpeg + "more"), "");
  for (const char* chunk : {"IHDR", "IDAT", "IEND"}) {
    std::string png = kPng;
    const std::size_t at = png.find(chunk);
    png[at + 4 + static_cast<unsigned char>(png[at - 1])] ^= 1;
    EXPECT_THAT(why_not(png), HasSubstr("CRC error")) << chunk;
  }
}

TEST(Pictures, are_known_by_their_bytes_and_refused_by_name) {
  EXPECT_EQ(decode_field("jpg", kPng, {}).value(), decode_field("png", kPng, {}).value());
  EXPECT_EQ(why_not("RIFF....WEBPVP8 "), "a WebP file, expected a JPEG or PNG");
  EXPECT_EQ(why_not("GIF89a"), "a GIF file, expected a JPEG or PNG");
  std::string deep = kJpeg, lossless = kJpeg, wide = kPng;
  const std::size_t frame = kJpeg.find("\xff\xc0");
  deep[frame + 4] = 12;
  EXPECT_EQ(why_not(deep), "a JPEG of 12 bits a value, expected 8");
  lossless[frame + 1] = '\xc3';
  EXPECT_THAT(why_not(lossless), HasSubstr("a lossless JPEG"));
  std::string huge = kJpeg;
  huge.replace(frame + 5, 4, "\xff\xff\xff\xff");
  EXPECT_EQ(why_not(huge), "a picture of 65535 x 65535 pixels, expected at most 100000000");
}

TEST(Npy, becomes_floats_and_integers) {
  const auto bytes = npy("|u1", "(2, 1)", std::string("\xff\x00", 2));
  EXPECT_EQ(decode_npy(bytes).value(), (Array{{2, 1}, std::vector<std::int64_t>{255, 0}}));
  EXPECT_EQ(decode_npy(npy("<i2", "()", std::string("\xfe\xff", 2))).value(),
            (Array{{}, std::vector<std::int64_t>{-2}}));
  EXPECT_EQ(decode_npy(npy("<f2", "(3,)", std::string("\x00\x3c\x00\xc0\x00\x38", 6))).value(),
            (Array{{3}, std::vector<float>{1, -2, 0.5F}}));
}

TEST(Npy, is_read_in_any_order_of_axes_and_bytes) {
  const Array expected{{2, 3}, std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(decode_npy(npy("|i1", "(2, 3)", "\x01\x02\x03\x04\x05\x06")).value(), expected);
  EXPECT_EQ(decode_npy(npy("|i1", "(2, 3)", "\x01\x04\x02\x05\x03\x06", "True")).value(), expected);
  const std::string big("\0\1\0\4\0\2\0\5\0\3\0\6", 12);
  EXPECT_EQ(decode_npy(npy(">u2", "(2, 3)", big, "True")).value(), expected);
  const Array cube{{2, 2, 3}, std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  EXPECT_EQ(
      decode_npy(npy("|i1", "(2, 2, 3)", "\x01\x07\x04\x0a\x02\x08\x05\x0b\x03\x09\x06\x0c", "True")).value(),
      cube);
  EXPECT_EQ(decode_npy(npy(">f4", "(1,)", std::string("\x3f\x80\0\0", 4))).value(),
            (Array{{1}, std::vector<float>{1}}));
}

TEST(Npy, that_is_broken_is_an_error) {
  EXPECT_FALSE(decode_npy(""));
  EXPECT_FALSE(decode_npy(npy("", "(2,)", "1234")));
  EXPECT_THAT(decode_npy(npy("<f4", "(2,)", "1234")).error().message, HasSubstr("cut off"));
  EXPECT_THAT(decode_npy(npy("<f4", "(99999999999, 99999999999)", "1234")).error().message,
              HasSubstr("cut off"));
  EXPECT_THAT(decode_npy(npy("|O", "(1,)", "12")).error().message,
              HasSubstr("type |O, expected whole or real numbers"));
  EXPECT_THAT(decode_npy(npy("<i2", "(1,)", "123")).error().message, HasSubstr("1 bytes behind the values"));
  EXPECT_THAT(decode_npy(npy("<u8", "(1,)", std::string(8, '\xff'))).error().message,
              HasSubstr("18446744073709551615: a whole number beyond int64"));
  std::string records = npy("<f4", "(1,)", "1234");
  records.replace(records.find("'<f4'"), 5, "[('x'");
  EXPECT_THAT(decode_npy(records).error().message, HasSubstr("an npy file of records"));
  EXPECT_THAT(decode_npy(npy("<c8", "(1,)", "12345678")).error().message, HasSubstr("<c8"));
}

TEST(Numbers, are_whole_where_all_are) {
  EXPECT_EQ(decode_field("cls", " 7\n", {}).value(), (Array{{}, std::vector<std::int64_t>{7}}));
  EXPECT_EQ(decode_field("json", "[[1, 2], [3, 4.5]]", {}).value(),
            (Array{{2, 2}, std::vector<float>{1, 2, 3, 4.5F}}));
  EXPECT_EQ(decode_field("txt", "1 2\n 3\n", {}).value(), (Array{{3}, std::vector<std::int64_t>{1, 2, 3}}));
}

TEST(Numbers, in_a_text_are_spelled_as_people_and_numpy_write_them) {
  EXPECT_EQ(decode_field("txt", "+1 007, -00 0", {}).value(),
            (Array{{4}, std::vector<std::int64_t>{1, 7, 0, 0}}));
  EXPECT_EQ(decode_field("txt", ".5 1. -.25 +.5 2.e1 -3. 00.5", {}).value(),
            (Array{{7}, std::vector<float>{0.5F, 1, -0.25F, 0.5F, 20, -3, 0.5F}}));
  EXPECT_EQ(decode_field("txt", "", {}).value(), (Array{{0}, std::vector<std::int64_t>{}}));
  for (const char* none : {".", "-", "+", "+-1", "-+1", "--1", "1.2.3", "0x10", "1..", "a.5", "1,,2", "1,"})
    EXPECT_FALSE(decode_field("txt", none, {})) << none;
}

TEST(Numbers, are_whole_up_to_64_bits) {
  EXPECT_EQ(decode_json("[9223372036854775807, -9223372036854775808]").value(),
            (Array{{2}, std::vector<std::int64_t>{INT64_MAX, INT64_MIN}}));
  for (const char* large : {"9223372036854775808", "18446744073709551616", "-9223372036854775809"})
    EXPECT_EQ(decode_json(fmt::format("[[1, 2], [{}, 3]]", large)).error().message,
              fmt::format("expected whole numbers from -2^63 to 2^63 - 1, found {}", large));
  EXPECT_TRUE(decode_json("[1e19, 9223372036854775808.0]")) << "real numbers";
}

TEST(Numbers, are_at_most_the_largest_float32) {
  const auto beyond = [](const std::string& number) {
    return fmt::format("expected real numbers from -3.4e38 to 3.4e38 (float32), found {}", number);
  };
  for (const char* large : {"1e300", "-3.5e38", "1.0e39", "1e400", "-1e400"}) {
    EXPECT_EQ(decode_json(fmt::format("[[1, 2], [{}, 3]]", large)).error().message, beyond(large));
    EXPECT_EQ(decode_field("txt", fmt::format("1 {}\n", large), {}).error().message, beyond(large));
  }
  EXPECT_EQ(decode_json("[3.4028235e38, 1e-400]").value(),
            (Array{{2}, std::vector<float>{std::numeric_limits<float>::max(), 0}}));
  const auto wide = [](double value) {
    return npy("<f8", "(2,)", std::string(8, '\0') + std::string(reinterpret_cast<const char*>(&value), 8));
  };
  EXPECT_EQ(decode_npy(wide(1e300)).error().message, beyond("1e+300"));
  EXPECT_EQ(decode_npy(wide(-INFINITY)).value(), (Array{{2}, std::vector<float>{0, -INFINITY}}));
  EXPECT_EQ(decode_npy(wide(0.5)).value(), (Array{{2}, std::vector<float>{0, 0.5F}}));
}

TEST(Numbers, of_json_may_stand_behind_a_byte_order_mark) {
  EXPECT_EQ(decode_json("\xEF\xBB\xBF[1, 2]").value(), (Array{{2}, std::vector<std::int64_t>{1, 2}}));
  EXPECT_THAT(decode_json("\xEF\xBB\xBF[1e39]").error().message, HasSubstr("found 1e39"));
}

TEST(Numbers, have_the_shape_of_their_lists) {
  const auto shape = [](const char* json) { return decode_json(json).value().shape; };
  EXPECT_THAT(shape("7"), ElementsAre());
  EXPECT_THAT(shape("[]"), ElementsAre(0));
  EXPECT_THAT(shape("[[], []]"), ElementsAre(2, 0));
  EXPECT_THAT(shape("[[[1], [2]], [[3], [4]], [[5], [6]]]"), ElementsAre(3, 2, 1));
  for (const char* bad :
       {"[1, [2]]", "[[1], 2]", "[[], 1]", "[[], [1]]", "[[], [[]]]", "[[[]], []]", "[[[]], [1]]"})
    EXPECT_FALSE(decode_json(bad)) << bad;
}

TEST(Numbers, in_texts_are_only_texts) {
  const std::string caption = "123456789012345678901 dogs, 1e400 cats";
  const auto text = decode_field("txt", caption, {});
  EXPECT_EQ(text.error().message, "expected numbers, found \"" + caption + "\"");
  EXPECT_FALSE(text.error().lasting);
  EXPECT_FALSE(decode_json("[1e400, \"a\"]").error().lasting);
  EXPECT_TRUE(decode_json("[1e400]").error().lasting);
}

TEST(Numbers, that_are_none_are_an_error) {
  EXPECT_EQ(decode_field("cls", "cat", {}).error().message, "expected a whole number, found \"cat\"");
  for (const char* bad : {"{}", "[1, [2]]", "[[1], [2, 3]]", "[[[[[[[[[1]]]]]]]]]", "", "nul", "\"a\""})
    EXPECT_FALSE(decode_field("json", bad, {})) << bad;
  EXPECT_THAT(decode_field("txt", "a caption", {}).error().message, HasSubstr("expected numbers"));
  EXPECT_THAT(decode_field("mp4", "", {}).error().message, HasSubstr("no decoder for .mp4"));
}

}  // namespace
}  // namespace tw::data
