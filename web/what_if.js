// SPDX-License-Identifier: Apache-2.0
// What would change with other peers, bandwidths and batches: answers of the program for each position of the sliders.

import { h, panel, setAttribute, setText } from "./dom.js";
import { count, duration, plural, rate, signed, three, usd } from "./format.js";

/// A slider over these values: {element, index(), set(index)}.
function steps(label, values, show, changed) {
  const input = h("input", { type: "range", min: "0", max: String(values.length - 1), "aria-label": label });
  const output = h("output");
  const index = () => Number(input.value);
  const tell = () => {
    setText(output, show(values[index()]));
    setAttribute(input, "aria-valuetext", show(values[index()]));
  };
  input.addEventListener("input", () => {
    tell();
    changed();
  });
  return {
    element: h("label", { class: "slider" }, h("span", {}, label), input, output),
    index,
    set(position) {
      input.value = String(Math.min(position, values.length - 1));
      tell();
    },
  };
}

/// The table of what is and what would be.
function answerTable(names) {
  const rows = names.map(([name, hint]) => {
    const cells = [h("td"), h("td"), h("td")];
    return { cells, element: h("tr", {}, h("td", { title: hint }, name), cells) };
  });
  const element = h(
    "table",
    { class: "what-if" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["", "predicted now", "then", "change"].map((text) => h("th", { scope: "col" }, text)),
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

/// Dollars an hour of a position of the sliders: as `answers.usd` says for its peers, else in proportion to the peers
/// as they are, which cost usd_per_h. NaN: not known.
export function usdPerHour({ peers, rounds, usd, as_it_is }, [n, b, t], usd_per_h) {
  if (!usd) return ((usd_per_h ?? NaN) * peers[n]) / as_it_is.peers;
  const { machines, of_round, of_sample } = usd[n];
  const [samples_per_s, round_s] = rounds[n][b][t];
  return (machines ?? NaN) + 3600 * (of_round / round_s + of_sample * samples_per_s);
}

/// Sliders over `answers` of the program (rounds by peers, bandwidth and batch) and the table of what changes:
/// {element, reset(), at(), set(answers, usd_per_h)}. The dollars are those of usdPerHour(). at: positions
/// as of an earlier at(), null for the run as it is.
export function answerSliders(answers, at = null) {
  const view = { answers, usd_per_h: null };
  const start = [
    answers.peers.indexOf(answers.as_it_is.peers),
    answers.bandwidth.indexOf(1),
    answers.tbs.indexOf(answers.as_it_is.tbs),
  ];
  const table = answerTable([
    ["Samples/s", "of the run"],
    ["Round", "calculation and averaging"],
    ["Averaging", "of a round"],
    ["Granularity", "calculation / averaging time"],
    ["$/h", answers.usd ? "machines, traffic and data" : "in proportion to peers"],
    ["$ per million", "samples"],
  ]);
  const draw = () => {
    const place = sliders.map((one) => one.index());
    const round = ([n, b, t]) => view.answers.rounds[n][b][t];
    const [now, then] = [round(start), round(place)];
    const [usd_h, then_h] = [start, place].map((one) => usdPerHour(view.answers, one, view.usd_per_h));
    const million = (per_h, samples_per_s) => (per_h / 3600 / samples_per_s) * 1e6;
    const shows = [rate, duration, duration, (x) => (x == null ? "∞" : three(x))];
    table.set([
      ...shows.map((show, i) => [now[i], then[i], show]),
      [usd_h, then_h, usd],
      [million(usd_h, now[0]), million(then_h, then[0]), usd],
    ]);
  };
  const sliders = [
    steps("Peers", answers.peers, (x) => plural(x, "peer"), draw),
    steps("Bandwidth", answers.bandwidth, (x) => `× ${three(x)}`, draw),
    steps("Target batch", answers.tbs, count, draw),
  ];
  const reset = () => {
    sliders.forEach((one, i) => one.set(start[i]));
    draw();
  };
  sliders.forEach((one, i) => one.set((at ?? start)[i]));
  return {
    at: () => (sliders.some((one, i) => one.index() !== start[i]) ? sliders.map((one) => one.index()) : null),
    element: h(
      "div",
      {},
      h(
        "div",
        { class: "sliders" },
        sliders.map((one) => one.element),
      ),
      table.element,
    ),
    reset,
    set(newer, usd_per_h) {
      Object.assign(view, { answers: newer, usd_per_h });
      draw();
    },
  };
}

const positionsOf = ({ peers, bandwidth, as_it_is }) => JSON.stringify([peers, bandwidth, as_it_is]);

/// The program that serves the page is asked for its answers at most so often.
const ASK_EVERY_S = 5;

/// frozen: the answers of a page that holds its data; undefined: the live page, which asks the program.
export function whatIfPanel(frozen) {
  const part = panel("what-if", "What if", "predicted by the program from what this run measured");
  const view = { answers: frozen, asked_s: -Infinity, sliders: null, positions: "", board: null };
  const back = h("button", { class: "plain", type: "button", hidden: true }, "As it is");
  const error = h("p", { class: "hint", id: "model-error" });
  const empty = h("p", { class: "empty" }, "Waiting for two rounds to measure.");
  const body = h("div");
  part.tools.append(back);
  part.body.append(empty, body, error);
  back.addEventListener("click", () => view.sliders?.reset());

  const draw = () => {
    const { answers, board } = view;
    empty.hidden = Boolean(answers);
    body.hidden = error.hidden = back.hidden = !answers;
    if (!answers) return;
    if (view.positions !== positionsOf(answers)) {
      view.positions = positionsOf(answers);
      view.sliders = answerSliders(answers, view.sliders?.at());
      body.replaceChildren(view.sliders.element);
    }
    view.sliders.set(answers, board.money.usd_per_h);
    setText(error, judgedText(answers.judged));
  };
  const ask = async () => {
    const now_s = performance.now() / 1000;
    if (frozen !== undefined || now_s - view.asked_s < ASK_EVERY_S) return;
    view.asked_s = now_s;
    try {
      const answer = await fetch("predict");
      if (answer.ok) view.answers = await answer.json();
    } catch {
      return; // the state of the connection stands at the top of the page
    }
    draw();
  };
  return {
    element: part.element,
    set(board) {
      view.board = board;
      ask();
      draw();
    },
  };
}

function judgedText(judged) {
  if (!judged) return "Too few rounds with these peers yet to tell the prediction's error.";
  const { predicted, measured, rounds } = judged;
  return (
    `From earlier rounds ${three(predicted)} samples/s were predicted for the last ${plural(rounds, "round")}, ` +
    `which made ${three(measured)}. Its error so far: ${signed(predicted / measured - 1)}.`
  );
}
