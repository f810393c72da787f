// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <png.h>

#include "data/shards/picture.h"

namespace tw::data {

Result<Array> decode_png(std::string_view bytes, const PictureOptions& options, std::uint64_t seed) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const auto broken = [&] {
    const Error error{fmt::format("no PNG: {}", image.message)};
    png_image_free(&image);
    return error;
  };
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0) return broken();
  if (static_cast<std::uint64_t>(image.width) * image.height > kMostPixels) {
    const Error error{fmt::format("a picture of {} x {} pixels, expected at most {}", image.width,
                                  image.height, kMostPixels)};
    png_image_free(&image);
    return error;
  }
  const bool color = (image.format & PNG_FORMAT_FLAG_COLOR) != 0;
  const bool grey = options.channels == 1 || (options.channels == 0 && !color);
  image.format = grey ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  Picture picture{image.width, image.height, grey ? 1U : 3U};
  picture.bytes.resize(PNG_IMAGE_SIZE(image));
  const png_color black{};
  if (png_image_finish_read(&image, &black, picture.bytes.data(), 0, nullptr) == 0) return broken();
  return tensor_of(picture, part_of(picture.width, picture.height, options, seed), options, seed);
}

}  // namespace tw::data
