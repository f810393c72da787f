// SPDX-License-Identifier: Apache-2.0
// A plan: dollars against hours of all options, and why the others lost. Data: tw plan --json, and plan.svg.

import { h, panel, tile } from "./dom.js";
import { count, dateTime, plural, rate, three, usd } from "./format.js";
import { topBar } from "./header.js";
import { themeSwitch } from "./theme.js";

const hours = (x) => `${three(x)} h`;

export function planPage(app, { made_s, plan, svg }) {
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
    h("main", {}, numbers(plan), picture(svg), table(plan, withFront(plan, options)), next(plan), notes(plan)),
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
    make("Interruptions", ...losses(chosen.machines_taken), "on average over 256 scenarios"),
  );
}

/// Less than one machine in two runs is said of runs.
function losses(taken) {
  if (taken === 0) return ["none", "no machine is taken"];
  if (taken < 0.5) return [`1 run in ${count(Math.round(1 / taken))}`, "loses a machine"];
  return [three(taken), "machines taken"];
}

/// The program's own picture (plan.svg), in the colours of the page.
function picture(text) {
  const part = panel(
    "picture",
    "Cost against time",
    "left and down is better; point at an option for its reason",
  );
  const drawn = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  drawn.setAttribute("role", "img");
  drawn.setAttribute("aria-label", "Cost against time of all options, as in the table below");
  part.body.append(
    h(
      "div",
      { class: "scroll plan-picture", tabindex: "0", role: "region", "aria-label": "Cost against time" },
      document.importNode(drawn, true),
    ),
  );
  return part.element;
}

/// Each point of the front is a choice where the goal is the front.
function withFront(plan, options) {
  if (plan.goal !== "pareto") return options;
  return [options[0], ...plan.front.filter((one) => one.peers !== plan.chosen.peers), ...options.slice(1)];
}

function table(plan, options) {
  const some = options.some((one) => one.estimated);
  const part = panel("options", "Options", some ? "~ an estimated speed; tw profile measures it" : "");
  const heads = [
    "Plan",
    plan.goal === "pareto" ? "Against the chosen one" : "Why it lost",
    "Peers",
    "Bought",
    "Samples/s",
    "Hours",
    "P10 to P90",
    "$",
    "P10 to P90",
    "$/h",
    "$ per million",
  ];
  const numeric = (i) => i >= 4;
  const rows = options.map((one) => {
    const cells = [
      one.name,
      one.chosen ? "chosen" : (one.why_it_lost ?? ""),
      one.peers.replaceAll(";", "; "),
      one.bought,
      `${one.estimated ? "~" : ""}${rate(one.throughput_sps)}`,
      three(one.hours),
      `${three(one.hours_spread.p10)} to ${three(one.hours_spread.p90)}`,
      usd(one.usd),
      `${usd(one.usd_spread.p10)} to ${usd(one.usd_spread.p90)}`,
      usd(one.usd_per_h),
      usd(one.usd_per_million_samples),
    ];
    return h(
      "tr",
      { class: one.chosen ? "chosen" : "" },
      cells.map((text, i) =>
        h("td", { class: numeric(i) ? "number" : i === 1 || i === 2 ? "wide" : "" }, text),
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

function next(plan) {
  const part = panel("next", "What now", "");
  part.body.append(
    h("p", {}, "Start it: ", h("code", {}, plan.next)),
    h(
      "p",
      {},
      "While it runs, keep its machines or change them: ",
      h("code", {}, `${plan.next} --keep`),
      ". tw replan only says what it would do.",
    ),
  );
  return part.element;
}

/// How the run averages, and why so.
function averaging({ mode, averaging: { codec, round_samples, reasons } }) {
  return [`Mode ${mode} in ${codec}, ${plural(round_samples, "sample")} a round.`, ...reasons].join(" ");
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
      : "No loss of all peers without notice is expected: checkpoints are for accidents alone.";
  part.body.append(
    h("p", {}, `${search} ${pause}`),
    h("p", {}, averaging(plan)),
    h(
      "ul",
      { class: "plain-list" },
      plan.assumptions.map((text) => h("li", {}, text)),
    ),
  );
  return part.element;
}
