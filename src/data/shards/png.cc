// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <span>
#include <string>

#include "base/result.h"
#include "data/shards/picture.h"

namespace tw::data {
namespace {

/// One PNG that is read. libpng reports errors by longjmp, so the methods that call it have no objects of
/// their own. Values are those of the file: no gamma, no background under transparency.
class PngReading {
 public:
  explicit PngReading(std::string_view bytes) : rest_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, [](png_structp, png_const_charp) {});
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }

  ~PngReading() { png_destroy_read_struct(&png_, &info_, nullptr); }

  PngReading(const PngReading&) = delete;
  PngReading& operator=(const PngReading&) = delete;

  /// Up to the pixels; false: error().
  bool read_head() {
    if (png_ == nullptr || info_ == nullptr) return false;
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, this, read);
    png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_read_info(png_, info_);
    png_set_strip_16(png_);  // the high byte
    png_set_strip_alpha(png_);
    const int color = png_get_color_type(png_, info_);
    if (color == PNG_COLOR_TYPE_PALETTE) png_set_packing(png_);  // colors_of() checks the numbers
    if (color == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
    png_set_interlace_handling(png_);
    return true;
  }

  /// Without its pixels.
  Picture size() const { return {png_get_image_width(png_, info_), png_get_image_height(png_, info_)}; }

  bool has_palette() const { return png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE; }

  std::span<const png_color> palette() {
    png_colorp colors = nullptr;
    int count = 0;
    if (png_get_PLTE(png_, info_, &colors, &count) == 0) return {};
    return {colors, static_cast<std::size_t>(count)};
  }

  bool is_grey() const { return (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) == 0; }

  /// All pixels, and what follows them up to the end; false: error().
  bool read_pixels(std::vector<png_bytep>& rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_update_info(png_, info_);
    png_read_image(png_, rows.data());
    png_read_end(png_, nullptr);
    return true;
  }

  Error error() const { return Error{fmt::format("no PNG: {}", why_)}; }

 private:
  static void read(png_structp png, png_bytep to, std::size_t count) {
    auto& self = *static_cast<PngReading*>(png_get_io_ptr(png));
    if (count > self.rest_.size()) png_error(png, "it is cut off");
    std::copy_n(self.rest_.data(), count, to);
    self.rest_.remove_prefix(count);
  }

  [[noreturn]] static void fail(png_structp png, png_const_charp why) {
    static_cast<PngReading*>(png_get_error_ptr(png))->why_ = why;
    png_longjmp(png, 1);
  }

  std::string_view rest_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::string why_ = "libpng cannot be started";
};

/// The pixels whose numbers in the palette these are. libpng would make those black that it lacks.
Result<Picture> colors_of(const Picture& numbers, std::span<const png_color> palette) {
  Picture picture{numbers.width, numbers.height, 3};
  picture.bytes.reserve(3 * numbers.bytes.size());
  for (const std::uint8_t number : numbers.bytes) {
    if (number >= palette.size())
      return Error{fmt::format("no PNG: a pixel has color {} of a palette of {}", number, palette.size())};
    const png_color& color = palette[number];
    picture.bytes.insert(picture.bytes.end(), {color.red, color.green, color.blue});
  }
  return picture;
}

}  // namespace

Result<Array> decode_png(std::string_view bytes, const PictureOptions& options) {
  PngReading png(bytes);
  if (!png.read_head()) return png.error();
  Picture picture = png.size();
  TW_TRY(check_size(picture.width, picture.height));
  picture.channels = png.is_grey() || png.has_palette() ? 1 : 3;
  const std::size_t row_bytes = std::size_t{picture.width} * picture.channels;
  picture.bytes.resize(row_bytes * picture.height);
  std::vector<png_bytep> rows(picture.height);
  for (std::size_t row = 0; row < rows.size(); ++row) rows[row] = &picture.bytes[row * row_bytes];
  if (!png.read_pixels(rows)) return png.error();
  if (png.has_palette()) {
    TW_TRY(picture, colors_of(picture, png.palette()));
  }
  const Rectangle part = part_of(picture.width, picture.height, options);
  return tensor_of(with_channels(std::move(picture), options.channels), part, options);
}

}  // namespace tw::data
