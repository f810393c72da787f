// SPDX-License-Identifier: Apache-2.0
// Points with names and ranges on two axes; each can be pointed at and reached by keyboard.

import { h, onWidth, svg } from "./dom.js";
import { placeLabels } from "./labels.js";
import { scaleOf } from "./ticks.js";

const MARGIN = { left: 64, right: 18, top: 14, bottom: 44 };

/// points: [{x, y, xRange, yRange, name, looks, lines}], drawn in this order; front: [{x, y}] to join by a line.
/// axes: {x: {name, tick}, y: {name, tick}}. An element that redraws itself with its width.
export function scatter(points, front, axes, height = 420) {
  const tip = h("div", { class: "tip", hidden: true });
  const box = h("div", { class: "scatter" }, tip);
  let picture = null;
  onWidth(box, (width) => {
    picture?.remove();
    picture = draw(
      points,
      front,
      axes,
      { width, height: width < 500 ? Math.round(height * 0.85) : height },
      tip,
    );
    box.prepend(picture);
  });
  return box;
}

function draw(points, front, axes, size, tip) {
  const frame = {
    x: MARGIN.left,
    y: MARGIN.top,
    w: size.width - MARGIN.left - MARGIN.right,
    h: size.height - MARGIN.top - MARGIN.bottom,
  };
  const reach = (key, range) =>
    points.flatMap((point) => [point[key], ...(point[range] ?? [])]).filter(Number.isFinite);
  const x = scaleOf(0, Math.max(...reach("x", "xRange")), Math.max(3, Math.floor(size.width / 110)));
  const y = scaleOf(0, Math.max(...reach("y", "yRange")), 6);
  const at = (px, py) => [
    frame.x + (frame.w * (px - x.low)) / (x.high - x.low),
    frame.y + frame.h * (1 - (py - y.low) / (y.high - y.low)),
  ];
  const placed = points.map((point) => ({ ...point, at: at(point.x, point.y), radius: point.name ? 6 : 4 }));
  const named = placed.filter((point) => point.name);
  const boxes = placeLabels(
    named.map((point) => ({
      x: point.at[0],
      y: point.at[1],
      w: point.name.length * 7.2,
      h: 16,
      radius: point.radius,
    })),
    placed.map((point) => ({ x: point.at[0], y: point.at[1], radius: point.radius })),
    frame,
  );
  return svg(
    "svg",
    {
      viewBox: `0 0 ${size.width} ${size.height}`,
      height: size.height,
      role: "group",
      "aria-label": `${axes.y.name} against ${axes.x.name}`,
    },
    grid(frame, x, y, at, axes, size),
    front.length > 1
      ? svg("path", {
          class: "front",
          d: `M${front
            .map((one) =>
              at(one.x, one.y)
                .map((v) => v.toFixed(1))
                .join(" "),
            )
            .join("L")}`,
        })
      : null,
    placed.map((point) => dot(point, at, tip, size)),
    named.map(
      (point, i) =>
        boxes[i] &&
        svg("text", { class: "name", x: boxes[i].x.toFixed(1), y: (boxes[i].y + 12).toFixed(1) }, point.name),
    ),
  );
}

function grid(frame, x, y, at, axes, size) {
  return [
    x.values.map((value) => {
      const [px] = at(value, 0);
      return [
        svg("line", { class: "grid", x1: px, x2: px, y1: frame.y, y2: frame.y + frame.h }),
        svg("text", { x: px, y: frame.y + frame.h + 17, "text-anchor": "middle" }, axes.x.tick(value)),
      ];
    }),
    y.values.map((value) => {
      const [, py] = at(0, value);
      return [
        svg("line", { class: "grid", x1: frame.x, x2: frame.x + frame.w, y1: py, y2: py }),
        svg("text", { x: frame.x - 8, y: py + 4, "text-anchor": "end" }, axes.y.tick(value)),
      ];
    }),
    svg("path", {
      class: "axis",
      fill: "none",
      d: `M${frame.x} ${frame.y}V${frame.y + frame.h}H${frame.x + frame.w}`,
    }),
    svg("text", { x: frame.x + frame.w / 2, y: size.height - 6, "text-anchor": "middle" }, axes.x.name),
    svg(
      "text",
      {
        x: 12,
        y: frame.y + frame.h / 2,
        "text-anchor": "middle",
        transform: `rotate(-90 12 ${frame.y + frame.h / 2})`,
      },
      axes.y.name,
    ),
  ].flat(2);
}

function dot(point, at, tip, size) {
  const [cx, cy] = point.at;
  const ranges = [];
  if (point.xRange) {
    const [[x1], [x2]] = point.xRange.map((value) => at(value, point.y));
    ranges.push(svg("line", { class: "range", x1, x2, y1: cy, y2: cy }));
  }
  if (point.yRange) {
    const [[, y1], [, y2]] = point.yRange.map((value) => at(point.x, value));
    ranges.push(svg("line", { class: "range", x1: cx, x2: cx, y1, y2 }));
  }
  const show = () => {
    tip.replaceChildren(
      h("b", {}, point.lines[0]),
      ...point.lines.slice(1).flatMap((line) => [h("br"), line]),
    );
    tip.hidden = false;
    tip.style.left = `${Math.max(0, Math.min(cx - tip.offsetWidth / 2, size.width - tip.offsetWidth))}px`;
    tip.style.top = `${cy > tip.offsetHeight + 16 ? cy - tip.offsetHeight - 12 : cy + 14}px`;
  };
  const hide = () => {
    tip.hidden = true;
  };
  return svg(
    "g",
    {
      class: `point ${point.looks}`,
      tabindex: "0",
      role: "img",
      "aria-label": point.lines.join(". "),
      onpointerenter: show,
      onpointerleave: hide,
      onfocus: show,
      onblur: hide,
    },
    ranges,
    svg("circle", { class: "halo", cx, cy, r: 12 }),
    svg("circle", { cx, cy, r: point.radius }),
  );
}
