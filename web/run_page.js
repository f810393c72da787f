// SPDX-License-Identifier: Apache-2.0
// A run: the board, live or frozen.

import { h, setText } from "./dom.js";
import { countdown, dateTime } from "./format.js";
import { isOver } from "./states.js";
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
  const summary = h("summary");
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
        summary,
        h("div", { class: "grid" }, folded.map((part) => part.element)),
      ),
    ),
    h("footer", {}, "Times are those of your clock's zone. What each number means: docs/watch.md"),
  );
  themeSwitch(bar.theme, () => parts.forEach((part) => part.restyle?.()));

  const silence = new Silence();
  const seen = { board: null, silent: new Set(), lost_s: null };
  const draw = () => {
    const { board, silent, lost_s } = seen;
    bar.setRun(board.run ? `run ${board.run.slice(0, 8)}` : "");
    bar.setRound(board, lost_s);
    document.title = `${stateOf(board, lost_s)} · tradewind`;
    first.set(board, silent, lost_s);
    numbers.set(board);
    waiting.set(board, silent, board.now_s, lost_s);
    for (const part of parts) part.set(board, silent, board.now_s);
    links.element.hidden = board.links.every((link) => link.from === link.to);
    const all = `${links.element.hidden ? "What" : "Links, what"} if, interruptions and the ledger of samples`;
    setText(summary, all);
  };
  const show = (board) => {
    Object.assign(seen, { board, silent: frozen ? new Set() : silence.take(board), lost_s: null });
    draw();
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
    if (state === "live") return bar.setLink("live", "live");
    if (state !== "lost") return;
    if (age_s === null) {
      document.title = "no connection · tradewind";
      return bar.setLink("lost", "no connection");
    }
    if (seen.lost_s === null) {
      seen.lost_s = Date.now() / 1000 - age_s;
      draw();
    }
    if (isOver(seen.board)) bar.setLink("frozen", `as of ${dateTime(seen.board.now_s)}`);
    else bar.setLink("lost", `connection lost, data is ${countdown(age_s)} old`);
  }, 500);
}

/// In a word or two: of a run that is not over, a page without a connection knows nothing.
function stateOf(board, lost_s) {
  if (board.complete) return "complete";
  if (board.ended) return "over";
  if (board.dead_since_s != null) return "dead";
  return lost_s == null ? `round ${board.round}` : "no connection";
}
