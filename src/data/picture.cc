// SPDX-License-Identifier: Apache-2.0
#include "data/picture.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/prng.h"

namespace tw::data {
namespace {

constexpr double kLeastArea = 0.08, kWidestRatio = 4.0 / 3.0;
constexpr int kCropAttempts = 10;
constexpr std::uint64_t kOfCrop = 1, kOfFlip = 2;

Rectangle middle_of(std::uint32_t width, std::uint32_t height) {
  const double side = std::min(width, height);
  return {(width - side) / 2, (height - side) / 2, side, side};
}

/// Value at a point between pixels; the border goes on outside.
double value_at(const Picture& picture, double x, double y, std::uint32_t channel) {
  const auto clamped = [](double at, std::uint32_t end) {
    return std::clamp(at, 0.0, static_cast<double>(end - 1));
  };
  const double px = clamped(x - 0.5, picture.width), py = clamped(y - 0.5, picture.height);
  const auto left = static_cast<std::uint32_t>(px), top = static_cast<std::uint32_t>(py);
  const std::uint32_t right = std::min(left + 1, picture.width - 1);
  const std::uint32_t bottom = std::min(top + 1, picture.height - 1);
  const auto pixel = [&](std::uint32_t column, std::uint32_t row) -> double {
    return picture.bytes[(std::size_t{row} * picture.width + column) * picture.channels + channel];
  };
  const double dx = px - left, dy = py - top;
  return (pixel(left, top) * (1 - dx) + pixel(right, top) * dx) * (1 - dy) +
         (pixel(left, bottom) * (1 - dx) + pixel(right, bottom) * dx) * dy;
}

}  // namespace

Rectangle part_of(std::uint32_t width, std::uint32_t height, const PictureOptions& options,
                  std::uint64_t seed) {
  if (options.size == 0) return {0, 0, static_cast<double>(width), static_cast<double>(height)};
  if (!options.random_crop) return middle_of(width, height);
  Prng prng(mix(seed, kOfCrop));
  for (int attempt = 0; attempt < kCropAttempts; ++attempt) {
    const double area = (kLeastArea + (1 - kLeastArea) * prng.uniform()) * width * height;
    const double ratio = std::exp((2 * prng.uniform() - 1) * std::log(kWidestRatio));
    const double w = std::round(std::sqrt(area * ratio)), h = std::round(std::sqrt(area / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const double x = std::floor(prng.uniform() * (width - w + 1));
    return {x, std::floor(prng.uniform() * (height - h + 1)), w, h};
  }
  return middle_of(width, height);
}

Array tensor_of(const Picture& picture, const Rectangle& part, const PictureOptions& options,
                std::uint64_t seed) {
  TW_CHECK(picture.bytes.size() == std::size_t{picture.width} * picture.height * picture.channels);
  const std::uint32_t width = options.size == 0 ? picture.width : options.size;
  const std::uint32_t height = options.size == 0 ? picture.height : options.size;
  const bool flipped = options.flip && Prng(mix(seed, kOfFlip)).chance(0.5);
  const double step_x = part.width / width, step_y = part.height / height;
  // As many points a pixel of the tensor as pixels of the picture lie in it.
  const int points_x = std::max(1, static_cast<int>(std::ceil(step_x)));
  const int points_y = std::max(1, static_cast<int>(std::ceil(step_y)));
  std::vector<float> values;
  values.reserve(std::size_t{width} * height * picture.channels);
  for (std::uint32_t channel = 0; channel < picture.channels; ++channel) {
    for (std::uint32_t row = 0; row < height; ++row) {
      for (std::uint32_t column = 0; column < width; ++column) {
        const std::uint32_t from = flipped ? width - 1 - column : column;
        double sum = 0;
        for (int j = 0; j < points_y; ++j) {
          for (int i = 0; i < points_x; ++i)
            sum += value_at(picture, part.x + (from + (i + 0.5) / points_x) * step_x,
                            part.y + (row + (j + 0.5) / points_y) * step_y, channel);
        }
        values.push_back(static_cast<float>(sum / (points_x * points_y) / 255));
      }
    }
  }
  return {{picture.channels, height, width}, std::move(values)};
}

}  // namespace tw::data
