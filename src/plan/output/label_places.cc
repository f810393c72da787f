// SPDX-License-Identifier: Apache-2.0
#include "plan/output/label_places.h"

#include <algorithm>

namespace tw::plan {
namespace {

double common_area(const Box& a, const Box& b) {
  const double width = std::min(a.x + a.width, b.x + b.width) - std::max(a.x, b.x);
  const double height = std::min(a.y + a.height, b.y + b.height) - std::max(a.y, b.y);
  return std::max(0.0, width) * std::max(0.0, height);
}

bool within(const Box& inner, const Box& outer) {
  return inner.x >= outer.x && inner.y >= outer.y && inner.x + inner.width <= outer.x + outer.width &&
         inner.y + inner.height <= outer.y + outer.height;
}

/// Right, left, above, below, the corners; then the same further away.
std::vector<Box> places_around(const LabelledPoint& point, double radius) {
  std::vector<Box> places;
  const double w = point.width;
  const double h = point.height;
  for (const double gap : {4.0, 14.0, 28.0, 46.0, 70.0}) {
    const double d = radius + gap;
    for (const auto& [dx, dy] : {std::pair{d, -h / 2}, std::pair{-d - w, -h / 2}, std::pair{-w / 2, -d - h},
                                 std::pair{-w / 2, d}, std::pair{d, -d - h / 2}, std::pair{d, d - h / 2},
                                 std::pair{-d - w, -d - h / 2}, std::pair{-d - w, d - h / 2}})
      places.push_back({point.x + dx, point.y + dy, w, h});
  }
  return places;
}

}  // namespace

bool overlap(const Box& a, const Box& b) { return common_area(a, b) > 0; }

std::vector<std::optional<Box>> place_labels(const std::vector<LabelledPoint>& points, const Box& frame,
                                             double radius) {
  std::vector<Box> dots;
  for (const LabelledPoint& point : points)
    dots.push_back({point.x - radius, point.y - radius, 2 * radius, 2 * radius});
  std::vector<std::optional<Box>> boxes;
  for (const LabelledPoint& point : points) {
    std::optional<Box> best;
    if (point.width == 0) {
      boxes.push_back(best);
      continue;
    }
    double least = 0;
    for (const Box& place : places_around(point, radius)) {
      const bool taken = std::any_of(boxes.begin(), boxes.end(),
                                     [&](const auto& other) { return other && overlap(place, *other); });
      if (taken || !within(place, frame)) continue;
      double cost = 0;
      for (const Box& dot : dots) cost += common_area(place, dot);
      if (best && cost >= least) continue;
      best = place;
      least = cost;
    }
    boxes.push_back(best);
  }
  return boxes;
}

}  // namespace tw::plan
