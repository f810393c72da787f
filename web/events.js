// SPDX-License-Identifier: Apache-2.0
// Arrivals and departures of peers, and where the samples went.

import { h, keyed, panel, setText } from "./dom.js";
import { clock, count, dateTime, peerName, percent, plural } from "./format.js";
import { shape } from "./shapes.js";
import { kindOf } from "./states.js";

const SHOWN = 200;

export function interruptionsPanel() {
  const part = panel("interruptions", "Interruptions", "");
  const list = h("ol", { class: "events", tabindex: "0", "aria-label": "Interruptions, newest first" });
  const empty = h("p", { class: "empty" }, "Nobody came, left or was lost.");
  part.body.append(empty, list);
  return {
    element: part.element,
    set(board) {
      const all = board.interruptions.map((one, i) => ({
        ...one,
        key: `${one.at_s}|${one.kind}|${one.peer}|${i}`,
      }));
      const lost = all.filter((one) => one.kind === "lost").length;
      setText(
        part.note,
        all.length
          ? `${plural(lost, "loss", "losses")}, ${plural(all.filter((one) => one.kind === "joined").length, "joining", "joinings")}`
          : "",
      );
      empty.hidden = all.length > 0;
      list.hidden = !all.length;
      keyed(
        list,
        all.slice(-SHOWN).reverse(),
        (one) => one.key,
        makeEvent,
        () => {},
      );
    },
  };
}

function makeEvent(one) {
  const kind = kindOf(one.kind);
  return h(
    "li",
    {},
    shape(kind.state),
    h("time", { title: dateTime(one.at_s) }, clock(one.at_s)),
    h(
      "span",
      { class: "detail" },
      `${peerName(one.peer)} `,
      h("b", {}, kind.word),
      one.detail ? `: ${one.detail}` : "",
      h("span", { class: "round" }, ` · round ${count(one.round)}`),
    ),
  );
}

const PARTS = [
  {
    key: "committed",
    name: "In committed rounds",
    fill: "computing",
    hint: "of each of these every sample counts exactly once",
  },
  { key: "handed_over", name: "of these: handed over by peers that left", fill: "leaving", inside: true },
  {
    key: "again",
    name: "Given out again, at most",
    fill: "lost",
    hint: "their peer was lost before it contributed",
  },
  { key: "skipped", name: "Skipped", fill: "left", hint: "no peer could decode them: they add nothing to the gradient" },
];

export function ledgerPanel() {
  const part = panel("ledger", "Sample ledger", "every sample that was leased is here once");
  const bars = PARTS.map((one) => h("i", { class: `fill-${one.fill}`, title: one.name }));
  const values = PARTS.map(() => h("dd"));
  const shares = PARTS.map(() => h("dd", { class: "note" }));
  part.body.append(
    h("div", { class: "stack", "aria-hidden": "true" }, bars),
    h(
      "dl",
      { class: "rows" },
      PARTS.flatMap((one, i) => [
        h("dt", { title: one.hint }, h("span", { class: `key fill-${one.fill}` }), one.name),
        values[i],
        shares[i],
      ]),
    ),
  );
  return {
    element: part.element,
    set({ ledger }) {
      const total = ledger.committed + ledger.again + ledger.skipped;
      PARTS.forEach((one, i) => {
        const n = ledger[one.key];
        const drawn = one.key === "committed" ? n - ledger.handed_over : n;
        bars[i].style.width = total > 0 ? `${(100 * drawn) / total}%` : "0";
        bars[i].hidden = drawn <= 0;
        setText(values[i], count(n));
        setText(shares[i], total > 0 ? percent(n / total) : "");
      });
    },
  };
}
