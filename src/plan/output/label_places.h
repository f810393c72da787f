// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

/// Places labels beside the points of a plot. Pixels, y downwards.
namespace tw::plan {

struct Box {
  double x = 0, y = 0;  ///< upper left corner
  double width = 0, height = 0;

  bool operator==(const Box&) const = default;
};

bool overlap(const Box& a, const Box& b);

struct LabelledPoint {
  double x = 0, y = 0;
  double width = 0, height = 0;  ///< of its label; width 0: no label, but the point is kept free
};

/// A box for each point's label. No box overlaps another or leaves the frame, and points are kept free where
/// possible. Nothing if there is no room. Earlier points choose first.
std::vector<std::optional<Box>> place_labels(const std::vector<LabelledPoint>& points, const Box& frame,
                                             double radius);

}  // namespace tw::plan
