// SPDX-License-Identifier: Apache-2.0
// A plan: dollars against hours of all options, and why the others lost. Data: tw plan --json.

import { h, panel, tile } from "./dom.js";
import { count, dateTime, digits, plural, rate, three, usd } from "./format.js";
import { topBar } from "./header.js";
import { scatter } from "./scatter.js";
import { themeSwitch } from "./theme.js";

const hours = (x) => `${three(x)} h`;

export function planPage(app, { made_s, plan }) {
  const bar = topBar("tradewind plan");
  bar.hideProgress();
  bar.setRun(
    `${plural(plan.samples, "sample")}, goal: ${plan.goal}${plan.method ? `, by ${plan.method}` : ""}`,
  );
  bar.setLink("frozen", `planned ${dateTime(made_s)}`);
  const options = [
    { ...plan.chosen, chosen: true },
    ...plan.others.filter((one) => one.peers !== plan.chosen.peers || one.name !== plan.chosen.name),
  ];
  app.append(
    bar.element,
    h("main", {}, numbers(plan), picture(plan, options), table(plan, withFront(plan, options)), notes(plan)),
    h(
      "footer",
      {},
      "Ranges are P10 to P90 of 256 scenarios of interruptions and prediction errors. How a plan is found: docs/planner.md",
    ),
  );
  document.title = `plan: ${plan.chosen.peers} · tradewind`;
  themeSwitch(bar.theme, () => {});
}

function numbers({ chosen }) {
  const make = (label, value, note, hint) => {
    const one = tile(label, hint);
    one.set(value, note);
    return one.element;
  };
  return h(
    "div",
    { class: "tiles", role: "group", "aria-label": "The chosen plan in numbers" },
    make(
      "Cost",
      usd(chosen.usd),
      `${usd(chosen.usd_spread.p10)} to ${usd(chosen.usd_spread.p90)}`,
      "expected; P10 to P90",
    ),
    make(
      "Time",
      hours(chosen.hours),
      `${hours(chosen.hours_spread.p10)} to ${hours(chosen.hours_spread.p90)}`,
      "expected; P10 to P90",
    ),
    make("Speed", rate(chosen.throughput_sps), "samples/s", "of the whole run"),
    make("Per hour", usd(chosen.usd_per_h), "machines and traffic", "$/h"),
    make("Per million samples", usd(chosen.usd_per_million_samples), "", "$"),
    make("Averaging", `${three(chosen.comm_s)} s`, "a round", "time of averaging"),
    make("Interruptions", three(chosen.machines_taken), "machines taken", "on average"),
  );
}

function linesOf(one) {
  return [
    `${one.name}: ${one.peers}`,
    `${usd(one.usd)} (${usd(one.usd_spread.p10)} to ${usd(one.usd_spread.p90)}), ${hours(one.hours)} (${hours(one.hours_spread.p10)} to ${hours(one.hours_spread.p90)})`,
    `${rate(one.throughput_sps)} samples/s, ${usd(one.usd_per_h)}/h, ${usd(one.usd_per_million_samples)} per million`,
    ...(one.why_it_lost ? [one.why_it_lost] : []),
  ];
}

function picture(plan, options) {
  const part = panel(
    "picture",
    "Cost against time",
    "left and down is better; point at an option, or tab to it, for its reason",
  );
  const point = (one, looks, name) => ({
    x: one.hours,
    y: one.usd,
    xRange: [one.hours_spread.p10, one.hours_spread.p90],
    yRange: [one.usd_spread.p10, one.usd_spread.p90],
    looks,
    name,
    lines: linesOf(one),
  });
  const { shown, beyond } = withoutFar(plan, options);
  const inFront = plan.front.filter((one) => shown(one));
  const points = [
    ...inFront.map((one) => ({ ...point(one, "on-front", ""), xRange: undefined, yRange: undefined })),
    ...options
      .slice(1)
      .filter(shown)
      .map((one) => point(one, "other", one.name))
      .reverse(),
    point(plan.chosen, "chosen", plan.chosen.name === "chosen" ? "chosen" : `chosen: ${plan.chosen.name}`),
  ];
  part.body.append(
    scatter(
      points,
      inFront.map((one) => ({ x: one.hours, y: one.usd })),
      { x: { name: "hours", tick: (x) => digits(x) }, y: { name: "$ for the run", tick: (x) => digits(x) } },
    ),
    h(
      "ul",
      { class: "legend" },
      [
        ["chosen", "lost"],
        ["front of cost and time", "averaging"],
        ["runners-up and baselines", "left"],
      ].map(([name, fill]) =>
        h("li", {}, h("span", { class: `key fill-${fill}` }, "\u00a0\u00a0\u00a0"), name),
      ),
    ),
  );
  if (beyond.length)
    part.body.append(
      h(
        "p",
        { class: "hint" },
        `Outside of the picture: ${beyond.map((one) => `${one.name} (${hours(one.hours)}, ${usd(one.usd)})`).join(", ")}.`,
      ),
    );
  return part.element;
}

/// One option that takes ten times as long would press all others together: it is told below the picture.
function withoutFar(plan, options) {
  const most = (key) =>
    8 *
    Math.max(
      plan.chosen[key],
      ...plan.front
        .map((one) => one[key])
        .sort((a, b) => a - b)
        .slice(0, 3),
    );
  const limits = { hours: most("hours"), usd: most("usd") };
  const shown = (one) => one.hours <= limits.hours && one.usd <= limits.usd;
  return { shown, beyond: options.filter((one) => !shown(one)) };
}

/// Each point of the front is a choice where the goal is the front.
function withFront(plan, options) {
  if (plan.goal !== "pareto") return options;
  return [options[0], ...plan.front.filter((one) => one.peers !== plan.chosen.peers), ...options.slice(1)];
}

function table(plan, options) {
  const part = panel("options", "Options", "");
  const heads = [
    "Plan",
    "Peers",
    "Samples/s",
    "Hours",
    "P10 to P90",
    "$",
    "P10 to P90",
    "$/h",
    "$ per million",
    "Why it lost",
  ];
  const numeric = (i) => i >= 2 && i <= 8;
  const rows = options.map((one) => {
    const cells = [
      one.name,
      one.peers.replaceAll(";", "; "),
      rate(one.throughput_sps),
      three(one.hours),
      `${three(one.hours_spread.p10)} to ${three(one.hours_spread.p90)}`,
      usd(one.usd),
      `${usd(one.usd_spread.p10)} to ${usd(one.usd_spread.p90)}`,
      usd(one.usd_per_h),
      usd(one.usd_per_million_samples),
      one.chosen ? "chosen" : (one.why_it_lost ?? ""),
    ];
    return h(
      "tr",
      { class: one.chosen ? "chosen" : "" },
      cells.map((text, i) =>
        h("td", { class: numeric(i) ? "number" : i === 9 || i === 1 ? "wide" : "" }, text),
      ),
    );
  });
  part.body.append(
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Options" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            heads.map((name, i) => h("th", { scope: "col", class: numeric(i) ? "number" : "" }, name)),
          ),
        ),
        h("tbody", {}, rows),
      ),
    ),
  );
  return part.element;
}

function notes(plan) {
  const part = panel("notes", "What it rests on", "");
  const search = plan.method
    ? `Chosen by ${plan.method}.`
    : plan.exact
      ? "The search was exact: no other plan is better by this model."
      : `No plan is better by more than ${three(100 * plan.gap)} % by this model.`;
  const pause =
    plan.checkpoint.interval_s > 0
      ? `A checkpoint of ${three(plan.checkpoint.write_s)} s every ${count(plan.checkpoint.interval_s)} s.`
      : "No machine of this plan is taken: checkpoints are for accidents alone.";
  part.body.append(
    h("p", {}, `${search} ${pause}`),
    h(
      "ul",
      { class: "plain-list" },
      plan.assumptions.map((text) => h("li", {}, text)),
    ),
  );
  return part.element;
}
