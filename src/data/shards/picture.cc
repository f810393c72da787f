// SPDX-License-Identifier: Apache-2.0
#include "data/shards/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/check.h"

namespace tw::data {
namespace {

Rectangle middle_of(std::uint32_t width, std::uint32_t height) {
  const double side = std::min(width, height);
  return {(width - side) / 2, (height - side) / 2, side, side};
}

/// Weights of a row or column of pixels in one pixel of the tensor, from pixel `first` on.
struct Taps {
  std::uint32_t first = 0;
  std::vector<float> weights{};
};

/// One side of the part, as `count` pixels. Each is the mean of as many points as it covers pixels,
/// interpolated between neighbours; the border continues outside.
std::vector<Taps> taps_of(double begin, double length, std::uint32_t count, std::uint32_t pixels) {
  const double step = length / count;
  const int points = std::max(1, static_cast<int>(std::ceil(step)));
  std::vector<Taps> all(count);
  for (std::uint32_t at = 0; at < count; ++at) {
    Taps& taps = all[at];
    for (int i = 0; i < points; ++i) {
      const double place = std::clamp(begin + (at + (i + 0.5) / points) * step - 0.5, 0.0, pixels - 1.0);
      const auto pixel = static_cast<std::uint32_t>(place);
      if (i == 0) taps.first = pixel;
      const double after = place - pixel;
      taps.weights.resize(pixel - taps.first + (after > 0 ? 2 : 1));
      taps.weights[pixel - taps.first] += static_cast<float>((1 - after) / points);
      if (after > 0) taps.weights[pixel - taps.first + 1] += static_cast<float>(after / points);
    }
  }
  return all;
}

/// Reduces one row of pixels to [channels, columns].
void shrink_row(const Picture& picture, std::uint32_t row, const std::vector<Taps>& columns, float* out) {
  const std::uint8_t* const bytes = &picture.bytes[std::size_t{row} * picture.width * picture.channels];
  for (std::uint32_t channel = 0; channel < picture.channels; ++channel) {
    for (const Taps& taps : columns) {
      const std::uint8_t* pixel = bytes + std::size_t{taps.first} * picture.channels + channel;
      float sum = 0;
      for (const float weight : taps.weights) {
        sum += weight * *pixel;
        pixel += picture.channels;
      }
      *out++ = sum;
    }
  }
}

/// Adds weighted rows that are `stride` apart, from bytes to [0, 1].
void add_rows(const float* row, std::size_t stride, const std::vector<float>& weights, std::span<float> out) {
  for (const float weight : weights) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += weight * row[i];
    row += stride;
  }
  for (float& value : out) value /= 255;
}

/// The kind of a file that is decoded here as no picture, by its first bytes; empty: unknown.
std::string_view picture_kind_of(std::string_view bytes) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"GIF8", "a GIF"}, {"BM", "a BMP"}, {"II*", "a TIFF"}, {"MM", "a TIFF"}, {"\xff\x0a", "a JPEG XL"}};
  if (bytes.starts_with("RIFF") && bytes.substr(std::min<std::size_t>(8, bytes.size())).starts_with("WEBP"))
    return "a WebP";
  if (bytes.substr(std::min<std::size_t>(4, bytes.size())).starts_with("ftyp")) return "an AVIF or HEIC";
  if (bytes.find("jP  \r\n") == 4) return "a JPEG 2000";
  for (const auto& [begin, kind] : kKinds)
    if (bytes.starts_with(begin)) return kind;
  return {};
}

/// The luma of ITU-R BT.601 with Pillow's rounding.
Picture grey_of(const Picture& color) {
  Picture grey{color.width, color.height, 1};
  grey.bytes.resize(color.bytes.size() / 3);
  const std::uint8_t* pixel = color.bytes.data();
  for (std::uint8_t& value : grey.bytes) {
    const unsigned sum = 19595U * pixel[0] + 38470U * pixel[1] + 7471U * pixel[2] + 0x8000U;
    value = static_cast<std::uint8_t>(sum >> 16U);
    pixel += 3;
  }
  return grey;
}

Picture color_of(const Picture& grey) {
  Picture color{grey.width, grey.height, 3};
  color.bytes.reserve(grey.bytes.size() * 3);
  for (const std::uint8_t value : grey.bytes) color.bytes.insert(color.bytes.end(), 3, value);
  return color;
}

}  // namespace

Status check_size(std::uint32_t width, std::uint32_t height) {
  if (width > 0 && height > 0 && std::uint64_t{width} * height <= kMostPixels) return Unit{};
  return Error{fmt::format("a picture of {} x {} pixels, expected at most {}", width, height, kMostPixels)};
}

Picture with_channels(Picture picture, std::uint32_t channels) {
  if (channels == 0 || channels == picture.channels) return picture;
  return channels == 1 ? grey_of(picture) : color_of(picture);
}

Result<Array> decode_picture(std::string_view bytes, const PictureOptions& options) {
  if (bytes.empty()) return Error{"an empty file, expected a JPEG or PNG"};
  if (bytes.starts_with("\xff\xd8")) return decode_jpeg(bytes, options);
  if (bytes.starts_with("\x89PNG")) return decode_png(bytes, options);
  const std::string_view kind = picture_kind_of(bytes);
  return Error{kind.empty() ? "no JPEG or PNG" : fmt::format("{} file, expected a JPEG or PNG", kind)};
}

Rectangle part_of(std::uint32_t width, std::uint32_t height, const PictureOptions& options) {
  if (options.size == 0) return {0, 0, static_cast<double>(width), static_cast<double>(height)};
  return middle_of(width, height);
}

Array tensor_of(const Picture& picture, const Rectangle& part, const PictureOptions& options) {
  TW_CHECK(picture.bytes.size() == std::size_t{picture.width} * picture.height * picture.channels);
  const std::uint32_t width = options.size == 0 ? picture.width : options.size;
  const std::uint32_t height = options.size == 0 ? picture.height : options.size;
  const std::vector<Taps> columns = taps_of(part.x, part.width, width, picture.width);
  const std::vector<Taps> rows = taps_of(part.y, part.height, height, picture.height);
  const std::uint32_t first = rows.front().first;
  const std::size_t end = rows.back().first + rows.back().weights.size();
  const std::size_t row_values = std::size_t{picture.channels} * width;
  std::vector<float> narrow((end - first) * row_values);
  for (std::uint32_t row = first; row < end; ++row)
    shrink_row(picture, row, columns, &narrow[(row - first) * row_values]);
  std::vector<float> values(row_values * height);
  for (std::uint32_t row = 0; row < height; ++row) {
    const float* const from = &narrow[(rows[row].first - first) * row_values];
    for (std::uint32_t channel = 0; channel < picture.channels; ++channel) {
      float* const to = &values[(std::size_t{channel} * height + row) * width];
      add_rows(from + std::size_t{channel} * width, row_values, rows[row].weights, {to, width});
    }
  }
  return {{picture.channels, height, width}, std::move(values)};
}

}  // namespace tw::data
