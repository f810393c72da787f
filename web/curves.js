// SPDX-License-Identifier: Apache-2.0
// Loss, samples/s, dollars and prices over the time of the run. uPlot draws, this page decimates.

import { cssColour, h, onWidth, panel, setText } from "./dom.js";
import { keptIndices } from "./decimate.js";
import { digits, elapsed, measure, plural, si, three, usd } from "./format.js";
import { evaluated, evaluationsOf, increasing, marksOf, pricesOf, seriesOf } from "./rounds.js";
import { roundStep } from "./ticks.js";

const HEIGHT = 176;
const POINTS = 1200;

/// Two digits beside an exponent: there is no room for more.
const lossTick = (x) => measure(x, Math.abs(x) < 1e-4 ? 2 : 3);

const CURVES = [
  {
    key: "loss",
    name: "Loss",
    colour: "--averaging",
    tick: lossTick,
    value: (x) => measure(x),
    empty: "No batch told its loss yet.",
  },
  {
    key: "speed",
    name: "Samples/s",
    colour: "--computing",
    tick: (x) => (x < 1e5 ? digits(x) : si(x, "")),
    value: (x) => `${three(x)} samples/s`,
    zero: true,
    empty: "Waiting for the first round.",
  },
  {
    key: "usd",
    name: "Cost",
    colour: "--lost",
    tick: usd,
    value: usd,
    zero: true,
    empty: "No price known: start peers with --usd-per-h, or tw up with a plan.",
  },
];

const MOST_EVALUATIONS = 6;

const PRICES = {
  key: "prices",
  name: "A machine's price by zone",
  tick: usd,
  zero: true,
  steps: true,
  empty: "",
};
const COLOURS_OF_SITES = ["--computing", "--averaging", "--leaving", "--applying", "--lost", "--fetching"];

const evaluationCurve = (name, number) => ({
  key: "evaluation",
  id: `evaluation-${number}`,
  name,
  colour: "--computing",
  tick: lossTick,
  value: (x) => measure(x),
  empty: "",
});

export function curvesPanel() {
  const part = panel("curves", "Course of the run", "");
  const parts = CURVES.map(curve);
  const evaluations = new Map();
  const all = h(
    "div",
    { class: "curves" },
    parts.map((one) => one.element),
  );
  part.body.append(all);
  const prices = curve(PRICES);
  all.append(prices.element);
  const setEvaluations = (board, marks) => {
    for (const name of evaluated(board).slice(0, MOST_EVALUATIONS)) {
      if (!evaluations.has(name)) {
        evaluations.set(name, curve(evaluationCurve(name, evaluations.size)));
        all.append(evaluations.get(name).element);
      }
      evaluations.get(name).set(increasing(evaluationsOf(board, name)), marks, "");
    }
  };
  return {
    element: part.element,
    set(board) {
      const series = increasing(seriesOf(board));
      const marks = marksOf(board);
      const n = series.at.length;
      setText(
        part.note,
        n ? `${plural(board.round, "round")}${marks.length ? "; ✕ a peer was lost, ▴ one joined" : ""}` : "",
      );
      parts.forEach((one, i) => one.set(series, marks, emptyWords(CURVES[i], board)));
      setPrices(prices, pricesOf(board), marks);
      setEvaluations(board, marks);
    },
    restyle: () => [...parts, prices, ...evaluations.values()].forEach((one) => one.restyle()),
  };
}

/// Nothing where all machines have one price in one zone: the answers say it.
function setPrices(shown, { at, sites }, marks) {
  const known = new Set(sites.flatMap((site) => site.usd_per_h.filter((price) => price != null)));
  shown.element.hidden = sites.length < 2 && known.size < 2;
  if (shown.element.hidden) return;
  const lines = sites.slice(0, COLOURS_OF_SITES.length);
  const words = (i) => {
    const there = lines.filter((site) => site.machines[i]);
    return there.map((site) => `${site.machines[i]} x ${usd(site.usd_per_h[i])} ${site.name}`).join(", ");
  };
  // Each value stays until just before the next one.
  const JUST = 1e-6;
  const steps = (values) => values.flatMap((value, i) => (i > 0 ? [values[i - 1], value] : [value]));
  shown.draw({
    data: [
      steps(at).map((x, i) => (i % 2 ? at[(i + 1) / 2] - JUST : x)),
      ...lines.map((site) => steps(site.usd_per_h)),
    ],
    lines: lines.map((site, i) => ({ name: site.name, colour: COLOURS_OF_SITES[i] })),
    words: (i) => words(i >> 1),
    last: sites.length > lines.length ? `${lines.length} of ${sites.length} zones` : "$ an hour",
    marks,
  });
}

const emptyWords = (what, board) =>
  what.key === "usd" && board.money.usd != null ? "Waiting for the first round." : what.empty;

function curve(what) {
  const read = h("b");
  const plot = h("div", { class: "plot", role: "img", "aria-label": `${what.name} over time` });
  const empty = h("p", { class: "empty" }, what.empty);
  const key = h("div", { class: "key" });
  plot.append(empty);
  const element = h(
    "figure",
    { class: "curve", id: `curve-${what.id ?? what.key}` },
    h("figcaption", {}, h("span", {}, what.name), read),
    plot,
    key,
  );
  const view = { chart: null, width: 0, data: null, lines: [], words: () => "", marks: [], last: "" };

  const build = () => {
    view.chart?.destroy();
    view.chart = view.data && view.width ? new uPlot(options(what, view, read), view.data, plot) : null;
  };
  onWidth(plot, (width) => {
    view.width = width;
    if (view.chart) view.chart.setSize({ width, height: HEIGHT });
    else build();
  });
  /// data: seconds, then the values of each line: {name, colour}. words(i): what stands there.
  const draw = ({ data, lines, words, last, marks }) => {
    const names = (of) => of.map((line) => line.name).join();
    const others = names(lines) !== names(view.lines);
    Object.assign(view, { data, lines, words, last, marks });
    empty.hidden = true;
    if (lines.length > 1 && others) key.replaceChildren(...lines.map(keyOf));
    if (view.chart && !others) view.chart.setData(data);
    else build();
    if (view.chart && view.chart.cursor.idx == null) setText(read, last);
  };
  return {
    element,
    restyle: build,
    draw,
    set(series, marks, words) {
      setText(empty, words);
      const known = series[what.key].map((y, i) => (y == null ? -1 : i)).filter((i) => i >= 0);
      const kept = keptIndices(
        known.map((i) => series[what.key][i]),
        POINTS,
      ).map((k) => known[k]);
      if (!kept.length) return;
      const values = kept.map((i) => series[what.key][i]);
      draw({
        data: [kept.map((i) => series.at[i]), values],
        lines: [{ name: what.name, colour: what.colour }],
        words: (i) => `round ${series.round[kept[i]]}: ${what.value(values[i])}`,
        last: what.value(values.at(-1)),
        marks,
      });
    },
  };
}

function keyOf(line) {
  const mark = h("i", {});
  mark.style.background = `var(${line.colour})`;
  return h("span", {}, mark, line.name);
}

function options(what, view, read) {
  const axis = {
    stroke: cssColour("--soft"),
    grid: { stroke: cssColour("--soft-line"), width: 1 },
    ticks: { show: false },
    font: `11px ${getComputedStyle(document.body).fontFamily}`,
  };
  const lineOf = (line) => ({
    stroke: cssColour(line.colour),
    width: what.steps ? 2.4 : 1.6,
    points: { show: !what.steps && view.data[0].length < 40, size: 4, fill: cssColour(line.colour) },
  });
  return {
    width: view.width,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 10, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, sync: { key: "run" }, points: { size: 7 } },
    scales: {
      x: { time: false },
      y: { range: (chart, low, high) => rangeOf(low, high, what.zero) },
    },
    axes: [
      {
        ...axis,
        size: 26,
        gap: 4,
        space: 62,
        splits: (chart, i, low, high) => timeSplits(low, high, view.width),
        values: (chart, splits) => splits.map((s) => elapsed(s, splits[1] - splits[0])),
      },
      { ...axis, size: 52, gap: 4, space: 32, values: (chart, splits) => splits.map(what.tick) },
    ],
    series: [{}, ...view.lines.map(lineOf)],
    hooks: {
      draw: [(chart) => drawMarks(chart, view.marks)],
      setCursor: [
        (chart) => {
          const i = chart.cursor.idx;
          setText(read, (i != null && view.words(i)) || view.last);
        },
      ],
    },
  };
}

function rangeOf(low, high, zero) {
  if (low == null) return [0, 1];
  const from = zero ? 0 : low;
  const pad = high > from ? (high - from) * 0.06 : Math.abs(high) * 0.1 || 1;
  return [zero ? 0 : from - pad, high + pad];
}

/// At whole seconds, minutes, hours or days.
function timeSplits(low, high, width) {
  const most = Math.max(2, Math.floor(width / 78));
  const least = (high - low) / most;
  const step =
    [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400].find(
      (one) => one >= least,
    ) ?? 86400 * roundStep((high - low) / 86400, most);
  const used = high - low < 2 ? roundStep(high - low, most) : step;
  const splits = [];
  for (let at = Math.ceil(low / used) * used; at <= high + 1e-9; at += used) splits.push(at);
  return splits;
}

function drawMarks(chart, marks) {
  const context = chart.ctx;
  const ratio = window.devicePixelRatio || 1;
  const { left, top, width, height } = chart.bbox;
  context.save();
  context.lineWidth = 1.5 * ratio;
  for (const mark of marks) {
    const x = chart.valToPos(mark.at, "x", true);
    if (x < left || x > left + width) continue;
    const y = top + height - 6 * ratio;
    const r = 3.5 * ratio;
    context.strokeStyle = context.fillStyle = cssColour(
      mark.kind === "lost" ? "--lost" : mark.kind === "left" ? "--leaving" : "--computing",
    );
    context.beginPath();
    if (mark.kind === "joined") {
      context.moveTo(x, y - r);
      context.lineTo(x + r, y + r);
      context.lineTo(x - r, y + r);
      context.fill();
    } else {
      context.moveTo(x - r, y - r);
      context.lineTo(x + r, y + r);
      context.moveTo(x + r, y - r);
      context.lineTo(x - r, y + r);
      context.stroke();
    }
  }
  context.restore();
}
