// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <turbojpeg.h>

#include <memory>

#include "data/shards/picture.h"

namespace tw::data {
namespace {

using Jpeg = std::unique_ptr<void, int (*)(tjhandle)>;

Error broken_jpeg(const Jpeg& jpeg) { return Error{fmt::format("no JPEG: {}", tjGetErrorStr2(jpeg.get()))}; }

/// The smallest size that the decoder can make itself in which the part still has `size` pixels a side.
tjscalingfactor scale_for(const Rectangle& part, std::uint32_t size) {
  tjscalingfactor best{1, 1};
  if (size == 0) return best;
  int count = 0;
  const tjscalingfactor* factors = tjGetScalingFactors(&count);
  for (int i = 0; i < count; ++i) {
    const double factor = static_cast<double>(factors[i].num) / factors[i].denom;
    const bool smaller = factor < static_cast<double>(best.num) / best.denom;
    if (smaller && part.width * factor >= size && part.height * factor >= size) best = factors[i];
  }
  return best;
}

}  // namespace

Result<Array> decode_jpeg(std::string_view bytes, const PictureOptions& options, std::uint64_t seed) {
  const Jpeg jpeg(tjInitDecompress(), tjDestroy);
  if (!jpeg) return Error{"libturbojpeg cannot be started"};
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, sampling = 0, colors = 0;
  if (tjDecompressHeader3(jpeg.get(), data, bytes.size(), &width, &height, &sampling, &colors) != 0)
    return broken_jpeg(jpeg);
  if (width < 1 || height < 1 || static_cast<std::uint64_t>(width) * height > kMostPixels)
    return Error{fmt::format("a picture of {} x {} pixels, expected at most {}", width, height, kMostPixels)};
  const bool grey = options.channels == 1 || (options.channels == 0 && colors == TJCS_GRAY);
  Rectangle part =
      part_of(static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), options, seed);
  const tjscalingfactor scale = scale_for(part, options.size);
  Picture picture{static_cast<std::uint32_t>(TJSCALED(width, scale)),
                  static_cast<std::uint32_t>(TJSCALED(height, scale)), grey ? 1U : 3U};
  picture.bytes.resize(std::size_t{picture.width} * picture.height * picture.channels);
  const int code =
      tjDecompress2(jpeg.get(), data, bytes.size(), picture.bytes.data(), static_cast<int>(picture.width), 0,
                    static_cast<int>(picture.height), grey ? TJPF_GRAY : TJPF_RGB, 0);
  if (code != 0 && tjGetErrorCode(jpeg.get()) == TJERR_FATAL) return broken_jpeg(jpeg);
  const double x = static_cast<double>(picture.width) / width;
  const double y = static_cast<double>(picture.height) / height;
  part = {part.x * x, part.y * y, part.width * x, part.height * y};
  return tensor_of(picture, part, options, seed);
}

}  // namespace tw::data
