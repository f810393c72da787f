// SPDX-License-Identifier: Apache-2.0
// The shape of each state, as a small picture.

import { svg } from "./dom.js";
import { STATES } from "./states.js";

const PATHS = {
  disc: "M8 3a5 5 0 1 0 0 10a5 5 0 1 0 0-10z",
  ring: "M8 3a5 5 0 1 0 0 10a5 5 0 1 0 0-10zM8 5.2a2.8 2.8 0 1 1 0 5.6a2.8 2.8 0 1 1 0-5.6z",
  diamond: "M8 2l6 6l-6 6l-6-6z",
  triangle: "M8 2.6l6 10.4h-12z",
  down: "M6.4 2h3.2v6h3.6l-5.2 6l-5.2-6h3.6z",
  half: "M8 3a5 5 0 1 0 0 10a5 5 0 1 0 0-10zM8 5v6a3 3 0 1 1 0-6z",
  dash: "M3 7h10v2h-10z",
  cross:
    "M4.2 2.8l3.8 3.8l3.8-3.8l1.4 1.4l-3.8 3.8l3.8 3.8l-1.4 1.4l-3.8-3.8l-3.8 3.8l-1.4-1.4l3.8-3.8l-3.8-3.8z",
  bang: "M8 1.6l7 12.4h-14zM7.2 5.8v4h1.6v-4zM7.2 10.8v1.6h1.6v-1.6z",
};

export function pathOf(state) {
  return PATHS[STATES[state]?.shape] ?? PATHS.ring;
}

export function shape(state) {
  return svg(
    "svg",
    { class: `shape state-${state}`, viewBox: "0 0 16 16", width: 12, height: 12, "aria-hidden": "true" },
    svg("path", { d: pathOf(state), "fill-rule": "evenodd" }),
  );
}
