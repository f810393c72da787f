// SPDX-License-Identifier: Apache-2.0
// A run: the board, live or frozen.

import { h } from "./dom.js";
import { countdown, dateTime } from "./format.js";
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
  const parts = [
    lanesPanel(),
    curvesPanel(),
    peersPanel(),
    linksPanel(),
    whatIfPanel(),
    interruptionsPanel(),
    ledgerPanel(),
  ];
  app.append(
    bar.element,
    h(
      "main",
      {},
      numbers.element,
      waiting.element,
      parts.map((part) => part.element),
    ),
    h("footer", {}, "Times are those of your clock's zone. What each number means: docs/watch.md"),
  );
  themeSwitch(bar.theme, () => parts.forEach((part) => part.restyle?.()));

  const silence = new Silence();
  const show = (board) => {
    const silent = frozen ? new Set() : silence.take(board);
    bar.setRun(board.run ? `run ${board.run.slice(0, 8)}` : "");
    bar.setRound(board);
    document.title = `${board.complete ? "complete" : `round ${board.round}`} · tradewind`;
    numbers.set(board);
    waiting.set(board, silent, board.now_s);
    for (const part of parts) part.set(board, silent, board.now_s);
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
