// SPDX-License-Identifier: Apache-2.0
// What would change with other peers, lines and batches: the model of `tw predict`, fed with what this run measured.

import { h, panel, setAttribute, setText } from "./dom.js";
import { count, duration, plural, signed, three, usd } from "./format.js";
import { errorSoFar, measured, whatIf } from "./model.js";

/// A slider of positions 0 to `most`, with a text for each: {element, at(), set(position)}.
function positions(label, most, show, changed) {
  const input = h("input", { type: "range", min: "0", max: String(most), "aria-label": label });
  const output = h("output");
  const at = () => Number(input.value);
  const tell = () => {
    setText(output, show(at()));
    setAttribute(input, "aria-valuetext", show(at()));
  };
  input.addEventListener("input", () => {
    tell();
    changed();
  });
  return {
    element: h("label", { class: "slider" }, h("span", {}, label), input, output),
    at,
    set(position) {
      input.value = String(position);
      tell();
    },
  };
}

/// A slider over these values: {element, index(), set(index)}.
export function steps(label, values, show, changed) {
  const { element, at, set } = positions(label, values.length - 1, (i) => show(values[i]), changed);
  return { element, index: at, set };
}

/// A slider between least and most, on a logarithmic scale: {element, value(), range(least, most), set(value)}.
function slider(label, { least, most, whole, show }, changed) {
  const range = { least, most };
  const value = (position) => {
    const raw = range.least * Math.pow(range.most / range.least, position / 1000);
    return whole ? Math.max(1, Math.round(raw)) : raw;
  };
  const { element, at, set } = positions(label, 1000, (position) => show(value(position)), changed);
  return {
    element,
    value: () => value(at()),
    range: (from, to) => Object.assign(range, { least: from, most: to }),
    set: (x) => set(Math.round((1000 * Math.log(x / range.least)) / Math.log(range.most / range.least))),
  };
}

/// The table of what is and what would be.
export function answerTable(names) {
  const rows = names.map(([name, hint]) => {
    const cells = [h("td"), h("td"), h("td")];
    return { cells, element: h("tr", {}, h("td", { title: hint }, name), cells) };
  });
  const element = h(
    "table",
    { class: "answers" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["", "now", "then", "change"].map((text) => h("th", { scope: "col" }, text)),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map((row) => row.element),
    ),
  );
  return {
    element,
    set: (values) =>
      values.forEach(([now, then, show], i) => {
        setText(rows[i].cells[0], show(now));
        setText(rows[i].cells[1], show(then));
        const change = now > 0 && Number.isFinite(then) ? then / now - 1 : null;
        setText(rows[i].cells[2], change == null ? "–" : Math.abs(change) < 0.0005 ? "=" : signed(change));
      }),
  };
}

export function whatIfPanel() {
  const part = panel("what-if", "What if", "the model of tw predict with what this run measured");
  const view = { run: null, board: null, touched: false };
  const changed = () => {
    view.touched = true;
    draw();
  };
  const peers = slider(
    "Peers",
    { least: 1, most: 128, whole: true, show: (x) => plural(x, "peer") },
    changed,
  );
  const bandwidth = slider("Bandwidth", { least: 0.1, most: 10, show: (x) => `× ${three(x)}` }, changed);
  const tbs = slider("Target batch", { least: 64, most: 65536, whole: true, show: count }, changed);
  const table = answerTable([
    ["Samples/s", "of the run"],
    ["Round", "calculation and averaging"],
    ["Granularity", "calculation / averaging time"],
    ["$/h", "machines and traffic, in proportion to peers"],
    ["$ per million", "samples"],
  ]);
  const back = h("button", { class: "plain", type: "button" }, "As it is");
  const error = h("p", { class: "hint", id: "model-error" });
  const empty = h("p", { class: "empty" }, "Waiting for two rounds to measure.");
  const body = h(
    "div",
    {},
    h("div", { class: "sliders" }, peers.element, bandwidth.element, tbs.element),
    table.element,
    error,
  );
  part.tools.append(back);
  part.body.append(empty, body);

  const reset = () => {
    view.touched = false;
    tbs.range(Math.max(1, view.run.tbs / 32), view.run.tbs * 32);
    peers.set(view.run.n);
    bandwidth.set(1);
    tbs.set(view.run.tbs);
    draw();
  };
  back.addEventListener("click", () => view.run && reset());

  const draw = () => {
    const { run, board } = view;
    const now = whatIf(run, { peers: run.n, bandwidth: 1, tbs: run.tbs });
    const n = peers.value();
    const then = whatIf(
      run,
      view.touched
        ? { peers: n, bandwidth: bandwidth.value(), tbs: tbs.value() }
        : { peers: run.n, bandwidth: 1, tbs: run.tbs },
    );
    const per_h = board.money.usd_per_h;
    const then_h = per_h == null ? NaN : (per_h * n) / run.n;
    const million = (usd_h, at) => (usd_h / 3600 / at.samples_per_s) * 1e6;
    table.set([
      [now.samples_per_s, then.samples_per_s, three],
      [now.calc_s + now.comm_s, then.calc_s + then.comm_s, duration],
      [now.granularity, then.granularity, (x) => (Number.isFinite(x) ? three(x) : "∞")],
      [per_h ?? NaN, then_h, usd],
      [per_h == null ? NaN : million(per_h, now), million(then_h, then), usd],
    ]);
    const so_far = errorSoFar(board);
    setText(
      error,
      so_far
        ? `From earlier rounds the model predicted ${three(so_far.predicted)} samples/s for the last ` +
            `${plural(so_far.rounds, "round")}, which made ${three(so_far.measured)}. Its error so far: ${signed(so_far.error)}.`
        : "Too few rounds with these peers yet to tell the model's error.",
    );
  };
  return {
    element: part.element,
    set(board) {
      view.board = board;
      const run = measured(board);
      empty.hidden = run !== null;
      body.hidden = run === null;
      back.hidden = run === null;
      if (!run) return;
      view.run = run;
      if (!view.touched) reset();
      else draw();
    },
  };
}
