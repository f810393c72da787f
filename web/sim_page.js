// SPDX-License-Identifier: Apache-2.0
// A what-if run of tw sim: what of the machines' capacity became samples, and their strength over time.
// Data: tw sim --json of a what-if.

import { cssColour, h, onWidth, panel, tile } from "./dom.js";
import {
  bytes,
  count,
  dateTime,
  duration,
  elapsed,
  percent,
  plural,
  rate,
  si,
  three,
  usd,
} from "./format.js";
import { topBar } from "./header.js";
import { keptIndices } from "./decimate.js";
import { themeSwitch } from "./theme.js";

const LOST = [
  ["joining", "Joining", "fetching"],
  ["averaging", "Averaging", "averaging"],
  ["recomputed", "Computed again", "lost"],
  ["leaving", "Leaving", "leaving"],
  ["waiting", "Waiting", "left"],
];

/// Spot hours, and those that a policy took on demand.
function machineHours(report) {
  const spot = `${three(report.spot_machine_hours)} spot hours`;
  const demand = report.policy ? `, ${three(report.policy.on_demand_machine_hours)} on demand` : "";
  return `${spot}${demand}`;
}

/// What the cost leaves out; empty: nothing.
function unpriced(report) {
  if (!report.anchors || report.anchor_usd_per_h > 0) return "";
  return `${plural(report.anchors, "anchor")} without a price`;
}

export function simPage(app, data) {
  const { report } = data;
  const bar = topBar("tradewind what-if");
  bar.hideProgress();
  bar.setRun(`${data.machines}, seed ${data.seed}`);
  bar.setLink("frozen", `simulated ${dateTime(data.made_s)}`);
  const strength = strengthPart(report);
  app.append(
    bar.element,
    h("main", {}, tilesOf(report), capacityPart(report), lossesPart(report), strength.element),
    h(
      "footer",
      {},
      "The protocol's own code on a virtual network. What each number means: docs/simulation.md",
    ),
  );
  document.title = `what-if: ${data.machines} · tradewind`;
  themeSwitch(bar.theme, strength.restyle);
}

function tilesOf(report) {
  const make = (label, value, note, hint = "") => {
    const one = tile(label, hint);
    one.set(value, note);
    return one.element;
  };
  const speed = report.samples / (report.simulated_h * 3600);
  return h(
    "div",
    { class: "tiles", role: "group", "aria-label": "The run in numbers" },
    make("Goodput", percent(report.goodput), "of the machines' capacity"),
    make("Samples/s", rate(speed), `${si(report.samples, "")} in ${three(report.simulated_h)} h`),
    make("Rounds", count(report.rounds), `${duration(report.round_s)} each, median`),
    make("Machines lost", count(report.losses), `${plural(report.leaves, "left in time", "left in time")}`),
    make(
      "Recovery",
      duration(report.recover_s.median),
      `at worst ${duration(report.recover_s.worst)}`,
      "from a loss to the next commit, less a usual round",
    ),
    make(
      "Cost",
      report.usd > 0 ? usd(report.usd) : "–",
      report.usd > 0 ? unpriced(report) || machineHours(report) : "give --usd-per-h",
      `of ${machineHours(report)}`,
    ),
    make(
      "Per million samples",
      report.usd > 0 ? usd(report.usd_per_million_samples) : "–",
      `${bytes(report.sent_gb * 1e9)} sent`,
    ),
  );
}

function capacityPart(report) {
  const part = panel(
    "capacity",
    "Where the capacity went",
    `${si(report.capacity_samples, "")} samples would have been possible`,
  );
  const pieces = [
    ["", "In committed rounds", "computing", report.goodput],
    ...LOST.map(([key, name, fill]) => [key, name, fill, report.lost[key]]),
  ];
  const bar = h(
    "div",
    { class: "split", "aria-hidden": "true" },
    pieces.map(([, name, fill, share]) => {
      const piece = h("i", { class: `fill-${fill}`, title: `${name}: ${percent(share)}` });
      piece.style.width = `${100 * Math.max(0, share)}%`;
      return piece;
    }),
  );
  part.body.append(
    bar,
    h(
      "dl",
      { class: "rows" },
      pieces.flatMap(([, name, fill, share]) => [
        h("dt", {}, h("span", { class: `key fill-${fill}` }), name),
        h("dd", {}, percent(share)),
        h("dd", {}, ""),
      ]),
    ),
  );
  part.element.classList.add("half");
  return part.element;
}

function lossesPart(report) {
  const part = panel("losses", "What happened", "");
  const rows = [
    ["Machines that ever came", count(report.machines)],
    [
      "Members",
      `${three(report.members.mean)} on average, ${count(report.members.least)} to ${count(report.members.most)}`,
    ],
    ["Lost without notice", count(report.losses)],
    ["Left in time", count(report.leaves)],
    ["Samples computed again", count(report.recomputed_samples)],
    ["Rounds lost", count(report.rounds_lost)],
    ["Invariants violated", count(report.violations.length)],
  ];
  part.body.append(
    h(
      "dl",
      { class: "rows" },
      rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value), h("dd")]),
    ),
  );
  if (report.violations.length)
    part.body.append(
      h(
        "ul",
        { class: "plain-list" },
        report.violations.map((text) => h("li", {}, text)),
      ),
    );
  part.element.classList.add("half");
  return part.element;
}

function strengthPart(report) {
  const part = panel("strength", "Machines and members", "at each commit");
  const plot = h("div", { class: "plot", role: "img", "aria-label": "Machines and members over time" });
  part.body.append(
    h("figure", { class: "curve" }, plot),
    h(
      "ul",
      { class: "legend" },
      [
        ["machines that are up", "left"],
        ["members", "computing"],
      ].map(([name, fill]) =>
        h("li", {}, h("span", { class: `key fill-${fill}` }, "\u00a0\u00a0\u00a0"), name),
      ),
    ),
  );
  let chart = null;
  let wide = 0;
  const kept = keptIndices(
    report.strength.map((at) => at.members),
    2400,
  );
  const data = [
    kept.map((i) => report.strength[i].at_s),
    kept.map((i) => report.strength[i].machines),
    kept.map((i) => report.strength[i].members),
  ];
  const draw = () => {
    chart?.destroy();
    if (!wide || !kept.length) return;
    const axis = {
      stroke: cssColour("--soft"),
      grid: { stroke: cssColour("--soft-line"), width: 1 },
      ticks: { show: false },
      font: `11px ${getComputedStyle(document.body).fontFamily}`,
    };
    const stepped = uPlot.paths.stepped({ align: 1 });
    chart = new uPlot(
      {
        width: wide,
        height: 176,
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false } },
        scales: { x: { time: false }, y: { range: (u, low, high) => [0, high * 1.1 || 1] } },
        axes: [
          {
            ...axis,
            size: 26,
            values: (u, splits) => splits.map((s) => elapsed(s, splits[1] - splits[0])),
            incrs: [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 864000],
          },
          { ...axis, size: 44, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] },
        ],
        series: [
          {},
          { stroke: cssColour("--left"), width: 5, paths: stepped, points: { show: false } },
          { stroke: cssColour("--computing"), width: 1.6, paths: stepped, points: { show: false } },
        ],
      },
      data,
      plot,
    );
  };
  onWidth(plot, (width) => {
    wide = width;
    draw();
  });
  return { element: part.element, restyle: draw };
}
