// SPDX-License-Identifier: Apache-2.0
// A run: the board, live or frozen.

import { h } from "./dom.js";
import { countdown, dateTime } from "./format.js";
import { answers } from "./answers.js";
import { topBar, tiles, waitingLine } from "./header.js";
import { lanesPanel } from "./lanes.js";
import { curvesPanel } from "./curves.js";
import { peersPanel } from "./peers.js";
import { linksPanel } from "./links.js";
import { interruptionsPanel, ledgerPanel } from "./events.js";
import { whatIfPanel } from "./what_if.js";
import { Silence } from "./silence.js";
import { liveBoards } from "./source.js";
import { themeSwitch } from "./theme.js";

export function runPage(app, frozen) {
  const bar = topBar("tradewind");
  const numbers = tiles();
  const waiting = waitingLine();
  const first = answers();
  const shown = [peersPanel(), curvesPanel(), lanesPanel()];
  const links = linksPanel();
  const folded = [links, whatIfPanel(frozen ? (frozen.answers ?? null) : undefined), interruptionsPanel(), ledgerPanel()];
  const parts = [...shown, ...folded];
  app.append(
    bar.element,
    h(
      "main",
      {},
      first.element,
      numbers.element,
      waiting.element,
      shown.map((part) => part.element),
      h(
        "details",
        { class: "folded" },
        h("summary", {}, "Links, what if, interruptions and the ledger of samples"),
        h("div", { class: "grid" }, folded.map((part) => part.element)),
      ),
    ),
    h("footer", {}, "Times are those of your clock's zone. What each number means: docs/watch.md"),
  );
  themeSwitch(bar.theme, () => parts.forEach((part) => part.restyle?.()));

  const silence = new Silence();
  const show = (board) => {
    const silent = frozen ? new Set() : silence.take(board);
    bar.setRun(board.run ? `run ${board.run.slice(0, 8)}` : "");
    bar.setRound(board);
    const state = board.complete ? "complete" : board.dead_since_s != null ? "dead" : `round ${board.round}`;
    document.title = `${state} · tradewind`;
    first.set(board, silent);
    numbers.set(board);
    waiting.set(board, silent, board.now_s);
    for (const part of parts) part.set(board, silent, board.now_s);
    links.element.hidden = board.links.every((link) => link.from === link.to);
  };
  if (frozen) {
    bar.setLink("frozen", `as of ${dateTime(frozen.now_s)}`);
    show(frozen);
    return;
  }
  bar.setLink("waiting", "waiting for data");
  const live = liveBoards(show);
  setInterval(() => {
    const { state, age_s } = live.link();
    if (state === "live") bar.setLink("live", "live");
    else if (state === "lost")
      bar.setLink(
        "lost",
        age_s === null ? "no connection" : `connection lost, data is ${countdown(age_s)} old`,
      );
  }, 500);
}
