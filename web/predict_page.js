// SPDX-License-Identifier: Apache-2.0
// A prediction: speed, round and cost of a cluster with their ranges. Data: tw predict --json, and its answers for
// other peers, bandwidths and batches.

import { h, panel, svg, tile } from "./dom.js";
import { dateTime, duration, rate, three, usd } from "./format.js";
import { topBar } from "./header.js";
import { themeSwitch } from "./theme.js";
import { answerSliders } from "./what_if.js";

export function predictPage(app, data) {
  const { prediction } = data;
  const bar = topBar("tradewind prediction");
  bar.hideProgress();
  bar.setRun(`${data.model} on ${data.peers}`);
  bar.setLink("frozen", `predicted ${dateTime(data.made_s)}`);
  const parts = [tilesOf(prediction), roundPart(data), rangesPart(prediction)];
  if (data.answers) parts.push(whatIfPart(data));
  parts.push(notesPart(prediction, Boolean(data.answers)));
  app.append(
    bar.element,
    h("main", {}, parts),
    h(
      "footer",
      {},
      "Values are medians; ranges hold 80 %. How good predictions are, and when not to believe them: docs/planner.md",
    ),
  );
  document.title = `prediction: ${data.peers} · tradewind`;
  themeSwitch(bar.theme, () => {});
}

function tilesOf(prediction) {
  const range = ([low, high], show) => (low == null ? "" : `${show(low)} to ${show(high)}`);
  const make = (label, value, note) => {
    const one = tile(label, label);
    one.set(value, note);
    return one.element;
  };
  const { ranges } = prediction;
  return h(
    "div",
    { class: "tiles", role: "group", "aria-label": "The prediction in numbers" },
    make("Samples/s", rate(prediction.throughput_sps), range(ranges.throughput_sps, rate)),
    make(
      "Granularity",
      prediction.granularity == null ? "∞" : three(prediction.granularity),
      range(ranges.granularity, three),
    ),
    make("Round", duration(prediction.round_s), `limit: ${prediction.limit}`),
    make("Calculation", duration(prediction.calc_s), range(ranges.calc_s, duration)),
    make("Averaging", duration(prediction.comm_s), range(ranges.comm_s, duration)),
    make("Per hour", usd(prediction.usd_per_h.total), range(ranges.usd_per_h.total, usd)),
    make(
      "Per million samples",
      usd(prediction.usd_per_million_samples),
      range(ranges.usd_per_million_samples, usd),
    ),
  );
}

/// A round as a bar: calculation, averaging, and what of it hides behind the next calculation.
function roundPart({ prediction }) {
  const part = panel("round", "A round", "");
  const seen = Math.max(0, prediction.comm_s - prediction.overlap_s);
  const pieces = [
    ["computing", "Calculation", prediction.calc_s],
    ["averaging", prediction.overlap_s > 0 ? "Averaging that shows" : "Averaging", seen],
    ["fetching", "Averaging hidden by calculation", prediction.overlap_s],
  ].filter(([, , s]) => s > 0);
  const total = prediction.calc_s + seen;
  const bar = h(
    "div",
    { class: "split", "aria-hidden": "true" },
    pieces
      .filter(([fill]) => fill !== "fetching")
      .map(([fill, name, s]) => {
        const piece = h("i", { class: `fill-${fill}`, title: `${name}: ${duration(s)}` });
        piece.style.width = `${(100 * s) / total}%`;
        return piece;
      }),
  );
  part.body.append(
    bar,
    h(
      "dl",
      { class: "rows" },
      pieces.flatMap(([fill, name, s]) => [
        h("dt", {}, h("span", { class: `key fill-${fill}` }), name),
        h("dd", {}, duration(s)),
        h("dd", { class: "note" }, fill === "fetching" ? "" : `${Math.round((100 * s) / total)} %`),
      ]),
    ),
  );
  part.element.classList.add("half");
  return part.element;
}

function whisker([low, high], value) {
  const least = low / 1.1;
  const at = (x) => 4 + (142 * (x - least)) / (high * 1.1 - least);
  return h(
    "span",
    { class: "whisker" },
    svg(
      "svg",
      { width: 150, height: 12, "aria-hidden": "true" },
      svg("line", { x1: at(low), x2: at(high), y1: 6, y2: 6 }),
      svg("circle", { cx: at(value), cy: 6, r: 4 }),
    ),
  );
}

function rangesPart(prediction) {
  const part = panel("ranges", "Cost", "$/h with the 80 % range");
  const rows = [
    ["Machines", "vm"],
    ["Traffic between sites", "egress"],
    ["Data", "data"],
    ["In all", "total"],
  ].map(([name, key]) => {
    const [low, high] = prediction.ranges.usd_per_h[key];
    return h(
      "tr",
      {},
      h("td", {}, name),
      h("td", { class: "number" }, usd(prediction.usd_per_h[key])),
      h("td", {}, high > low ? whisker([low, high], prediction.usd_per_h[key]) : ""),
      h("td", { class: "number" }, `${usd(low)} to ${usd(high)}`),
    );
  });
  part.body.append(h("div", { class: "scroll" }, h("table", {}, h("tbody", {}, rows))));
  part.element.classList.add("half");
  return part.element;
}

/// What the program predicts for every position of the sliders.
function whatIfPart({ answers }) {
  const part = panel("what-if", "What if", "the same model");
  part.element.classList.add("half");
  const sliders = answerSliders(answers);
  sliders.reset();
  part.tools.append(h("button", { class: "plain", type: "button", onclick: sliders.reset }, "As it is"));
  part.body.append(sliders.element, h("p", { class: "hint" }, "Peers are scaled in every group alike."));
  return part.element;
}

function notesPart(prediction, beside) {
  const part = panel("notes", "Assumptions", "what was not measured");
  if (beside) part.element.classList.add("half");
  part.body.append(
    prediction.assumptions.length
      ? h(
          "ul",
          { class: "plain-list" },
          prediction.assumptions.map((text) => h("li", {}, text)),
        )
      : h("p", { class: "empty" }, "Everything it rests on was measured."),
  );
  return part.element;
}
