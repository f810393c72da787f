// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

/// Puts labels beside the points of a picture. Pixels, y downwards.
namespace tw::plan {

struct Box {
  double x = 0, y = 0;  ///< upper left corner
  double width = 0, height = 0;

  bool operator==(const Box&) const = default;
};

bool overlap(const Box& a, const Box& b);

struct LabelledPoint {
  double x = 0, y = 0;
  double width = 0, height = 0;  ///< of its label; without a width it has none, and is only kept free
};

/// A box for each point's label, none of which lies on another one or leaves the frame, and points are kept
/// free where that is possible; nothing where there is no room. Those that come first choose first.
std::vector<std::optional<Box>> place_labels(const std::vector<LabelledPoint>& points, const Box& frame,
                                             double radius);

}  // namespace tw::plan
