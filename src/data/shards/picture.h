// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/sample.h"

/// Pictures as model inputs. Pure functions, safe for any bytes. Errors do not name the object.
namespace tw::data {

/// Rows from the top, pixels from the left, the channels of a pixel interleaved.
struct Picture {
  std::uint32_t width = 0, height = 0, channels = 0;
  std::vector<std::uint8_t> bytes{};
};

/// A part of a picture, in pixels.
struct Rectangle {
  double x = 0, y = 0, width = 0, height = 0;

  bool operator==(const Rectangle&) const = default;
};

/// Conversion of pictures to tensors of one shape.
struct PictureOptions {
  std::uint32_t size = 0;      ///< width and height of the tensor; 0: those of the picture
  std::uint32_t channels = 0;  ///< 1: grey, 3: red, green, blue; 0: as they are
};

/// The part of a picture that a model sees: the square in the middle, or all of it.
Rectangle part_of(std::uint32_t width, std::uint32_t height, const PictureOptions& options);

/// float32 [channels, height, width] in [0, 1]. Downscaling averages,
/// upscaling interpolates. The pixels are those of Pillow: colors as convert("RGB") gives them, grey ones as
/// convert("L"), without gamma, transparency or the orientation of EXIF; of 16 bits the upper 8 count.
/// Errors: a file that is damaged, cut off, or of a kind that is not decoded. The kind is that of the bytes.
Result<Array> decode_picture(std::string_view bytes, const PictureOptions& options);

/// The same for one kind.
Result<Array> decode_jpeg(std::string_view bytes, const PictureOptions& options);
Result<Array> decode_png(std::string_view bytes, const PictureOptions& options);

/// The same from pixels; `part` in pixels of the picture.
Array tensor_of(const Picture& picture, const Rectangle& part, const PictureOptions& options);

/// Larger pictures are refused: 300 MB of pixels.
inline constexpr std::uint64_t kMostPixels = 100'000'000;

/// An error unless there are 1 to kMostPixels pixels.
Status check_size(std::uint32_t width, std::uint32_t height);

/// A picture of 1 or 3 channels with as many as asked for; 0: as it is.
Picture with_channels(Picture picture, std::uint32_t channels);

}  // namespace tw::data
