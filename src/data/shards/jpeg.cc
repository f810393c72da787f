// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "base/result.h"
#include "data/shards/picture.h"

namespace tw::data {
namespace {

using Jpeg = std::unique_ptr<void, int (*)(tjhandle)>;

/// The frame header (ITU T.81, B.2.2).
struct Frame {
  std::uint32_t width = 0, height = 0, components = 0;
};

std::uint32_t byte_at(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  return byte_at(bytes, at) << 8U | byte_at(bytes, at + 1);
}

/// `segment` begins behind its length. Kinds that the decoder does not have are refused by name.
Result<Frame> frame_of(std::uint32_t marker, std::string_view segment) {
  if (marker == 0xc3 || marker == 0xcb)
    return Error{"a lossless JPEG, expected a baseline or progressive one"};
  if (marker != 0xc0 && marker != 0xc1 && marker != 0xc2 && marker != 0xc9 && marker != 0xca)
    return Error{"a hierarchical JPEG, expected a baseline or progressive one"};
  if (segment.size() < 6) return Error{"no JPEG: its frame header is cut off"};
  if (byte_at(segment, 0) != 8)
    return Error{fmt::format("a JPEG of {} bits a value, expected 8", byte_at(segment, 0))};
  return Frame{number_at(segment, 3), number_at(segment, 1), byte_at(segment, 5)};
}

bool begins_frame(std::uint32_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

/// Walks the markers up to the end of the image. The decoder fills up a file that is cut off with grey, and
/// its warnings do not always say so.
Result<Frame> frame_in(std::string_view bytes) {
  constexpr std::uint32_t kEnd = 0xd9;
  const Error cut_off{"a JPEG that is cut off: it has no end-of-image marker"};
  std::optional<Frame> frame;
  for (std::size_t at = 2;;) {
    at = bytes.find('\xff', at);
    at = bytes.find_first_not_of('\xff', at);
    if (at == std::string_view::npos) return cut_off;
    const std::uint32_t marker = byte_at(bytes, at++);
    if (marker == kEnd && !frame) return Error{"no JPEG: it has no frame header"};
    if (marker == kEnd) return *frame;
    if (marker <= 1 || (marker >= 0xd0 && marker <= 0xd8)) continue;  // without a segment; 0: a value of 0xff
    if (bytes.size() - at < 2 || bytes.size() - at < number_at(bytes, at)) return cut_off;
    const std::size_t length = std::max<std::size_t>(number_at(bytes, at), 2);
    if (begins_frame(marker) && !frame) {
      TW_TRY(const auto found, frame_of(marker, bytes.substr(at + 2, length - 2)));
      frame = found;
    }
    at += length;
  }
}

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

/// Warnings of libjpeg about files whose pixels are all there.
bool is_harmless(std::string_view warning) {
  constexpr std::array<std::string_view, 4> kHarmless = {
      "Unknown Adobe color transform", "Warning: unknown JFIF revision", "Invalid SOS parameters",
      "Inconsistent progression sequence"};
  const bool extraneous = warning.find("extraneous bytes before marker") != std::string_view::npos;
  return extraneous ||
         std::ranges::any_of(kHarmless, [&](std::string_view known) { return warning.starts_with(known); });
}

/// An error for a fatal or damaging fault. Stops at the first warning, since only the last one can be asked
/// for; a harmless one is passed by in a second try.
Status decompress(tjhandle jpeg, std::string_view bytes, Picture& picture, int format) {
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  for (const int stop : {TJFLAG_STOPONWARNING, 0}) {
    const int code =
        tjDecompress2(jpeg, data, bytes.size(), picture.bytes.data(), static_cast<int>(picture.width), 0,
                      static_cast<int>(picture.height), format, stop | TJFLAG_LIMITSCANS);
    if (code == 0) return Unit{};
    const std::string_view fault = tjGetErrorStr2(jpeg);
    if (tjGetErrorCode(jpeg) == TJERR_FATAL || !is_harmless(fault))
      return Error{fmt::format("no JPEG: {}", fault)};
  }
  return Unit{};
}

/// Ink, inverted as Adobe's programs write it, becomes light. Rounds as Pillow.
Picture rgb_of_cmyk(const Picture& ink) {
  Picture picture{ink.width, ink.height, 3};
  picture.bytes.resize(ink.bytes.size() / 4 * 3);
  auto out = picture.bytes.begin();
  for (std::size_t at = 0; at < ink.bytes.size(); at += 4) {
    const unsigned black = ink.bytes[at + 3];
    for (std::size_t color = 0; color < 3; ++color) {
      const unsigned product = (255U - ink.bytes[at + color]) * black + 128U;
      *out++ = static_cast<std::uint8_t>(black - ((product + (product >> 8U)) >> 8U));
    }
  }
  return picture;
}

}  // namespace

Result<Array> decode_jpeg(std::string_view bytes, const PictureOptions& options) {
  TW_TRY(const auto frame, frame_in(bytes));
  const auto [width, height, components] = frame;
  TW_TRY(check_size(width, height));
  const Jpeg jpeg(tjInitDecompress(), tjDestroy);
  if (!jpeg) return Error{"libturbojpeg cannot be started"};
  Rectangle part = part_of(width, height, options);
  const tjscalingfactor scale = scale_for(part, options.size);
  const int format = components == 4 ? TJPF_CMYK : components == 1 ? TJPF_GRAY : TJPF_RGB;
  Picture picture{static_cast<std::uint32_t>(TJSCALED(static_cast<int>(width), scale)),
                  static_cast<std::uint32_t>(TJSCALED(static_cast<int>(height), scale)),
                  static_cast<std::uint32_t>(tjPixelSize[format])};
  picture.bytes.resize(std::size_t{picture.width} * picture.height * picture.channels);
  TW_TRY(decompress(jpeg.get(), bytes, picture, format));
  if (format == TJPF_CMYK) picture = rgb_of_cmyk(picture);
  const double x = static_cast<double>(picture.width) / width;
  const double y = static_cast<double>(picture.height) / height;
  part = {part.x * x, part.y * y, part.width * x, part.height * y};
  return tensor_of(with_channels(std::move(picture), options.channels), part, options);
}

}  // namespace tw::data
