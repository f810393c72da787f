// SPDX-License-Identifier: Apache-2.0
// Places labels beside their points, so that none lies on another one, on a point or outside of the picture.

const overlaps = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

const inside = (box, frame) =>
  box.x >= frame.x &&
  box.y >= frame.y &&
  box.x + box.w <= frame.x + frame.w &&
  box.y + box.h <= frame.y + frame.h;

const overlap = (a, b) =>
  Math.max(0, Math.min(a.x + a.w, b.x + b.w) - Math.max(a.x, b.x)) *
  Math.max(0, Math.min(a.y + a.h, b.y + b.h) - Math.max(a.y, b.y));

/// points: {x, y, w, h, radius} in order of importance, w and h of the label. dots: {x, y, radius} to keep
/// free. Returns a box {x, y, w, h} for each point, or null where there is no room.
export function placeLabels(points, dots, frame) {
  const taken = [];
  const blocks = dots.map((dot) => ({
    x: dot.x - dot.radius,
    y: dot.y - dot.radius,
    w: 2 * dot.radius,
    h: 2 * dot.radius,
  }));
  return points.map((point) => {
    const box = candidates(point)
      .filter((one) => inside(one, frame) && !taken.some((other) => overlaps(one, other)))
      .map((one, order) => ({
        one,
        cost: order + blocks.reduce((sum, block) => sum + overlap(one, block), 0),
      }))
      .sort((a, b) => a.cost - b.cost)[0];
    if (!box) return null;
    taken.push(box.one);
    return box.one;
  });
}

/// Right, left, above, below, the corners, then the same further away.
function candidates({ x, y, w, h, radius }) {
  const boxes = [];
  for (const gap of [4, 14, 28, 46]) {
    const d = radius + gap;
    for (const [dx, dy] of [
      [d, -h / 2],
      [-d - w, -h / 2],
      [-w / 2, -d - h],
      [-w / 2, d],
      [d, -d - h / 2],
      [d, d - h / 2],
      [-d - w, -d - h / 2],
      [-d - w, d - h / 2],
    ]) {
      boxes.push({ x: x + dx, y: y + dy, w, h });
    }
  }
  return boxes;
}
