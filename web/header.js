// SPDX-License-Identifier: Apache-2.0
// The top of the page: which run, how far, is what stands here still true; then its most wanted numbers.

import { h, svg, setText, setAttribute, tile } from "./dom.js";
import {
  countdown,
  count,
  dateTime,
  clock,
  duration,
  measure,
  peerNames,
  percent,
  plural,
  three,
  usd,
} from "./format.js";
import { shape } from "./shapes.js";
import { isApart, isGone, isOver } from "./states.js";
import { sentence, worstWait } from "./waits.js";

export function topBar(title) {
  const name = h("h1", {}, title);
  const run = h("span", { class: "run" });
  const fill = h("i");
  const track = h("span", { class: "track", role: "progressbar", "aria-label": "rounds of the run" }, fill);
  const round = h("span", { class: "of" });
  const progress = h("div", { class: "progress" }, round, track);
  const chip = h("span", { class: "chip", role: "status" });
  const theme = h("button", { class: "plain", type: "button", id: "theme" });
  const mark = svg(
    "svg",
    { viewBox: "0 0 24 24", "aria-hidden": "true" },
    svg("path", { d: "M2 8h13a3 3 0 1 0-3-3M2 13h17a3 3 0 1 1-3 3M2 18h8" }),
  );
  const element = h(
    "header",
    { class: "bar" },
    h("div", { class: "mark" }, mark, name),
    run,
    progress,
    h("div", { class: "end" }, chip, theme),
  );
  return {
    element,
    theme,
    hideProgress: () => progress.replaceChildren(),
    setRun: (text) => setText(run, text),
    /// link: live, lost, frozen or waiting
    setLink(link, text) {
      setAttribute(chip, "data-link", link);
      setText(chip, text);
    },
    setRound(board, lost_s = null) {
      const left = lost_s == null ? (board.money.left_s ?? 0) : 0;
      const of = board.last_round ? ` of ${count(board.last_round)}` : "";
      setText(
        round,
        board.complete
          ? `Complete, ${plural(board.round, "round")}`
          : `${board.ended ? "Over, round" : "Round"}\u00a0${count(board.round)}${of.replaceAll(" ", "\u00a0")}${board.dead_since_s != null ? "\u00a0· dead" : left > 0 ? ` · ${duration(left).replaceAll(" ", "\u00a0")}\u00a0left` : ""}`,
      );
      track.hidden = !board.last_round;
      if (!board.last_round) return;
      const share = Math.min(1, board.round / board.last_round);
      fill.style.width = `${100 * share}%`;
      setAttribute(track, "aria-valuenow", Math.round(100 * share));
    },
  };
}

/// The seven numbers.
export function tiles() {
  const loss = tile("Loss", "of the last batch");
  const speed = tile(
    "Samples/s",
    "samples/s over the last ten rounds; goodput: the share of the peers' time that went into samples that count",
  );
  const granularity = tile(
    "Granularity",
    "calculation / averaging time of a round: above 1 more peers still help",
  );
  const money = tile("Cost so far", "machines, traffic between sites, requests");
  const million = tile("Per million samples", "of the run so far");
  const whole = tile("Whole run", "forecast of the cost at the goal: low to high");
  const same = tile("Parameters", "the digests that peers tell after the same round");
  const element = h(
    "div",
    { class: "tiles", role: "group", "aria-label": "The run in numbers" },
    [loss, speed, granularity, money, million, whole, same].map((one) => one.element),
  );
  return {
    element,
    set(board) {
      const { speed: v, money: m } = board;
      loss.set(measure(board.loss), lossNote(board));
      speed.set(
        v.samples_per_s > 0 && board.dead_since_s == null ? three(v.samples_per_s) : "–",
        v.goodput == null ? "" : `goodput ${percent(v.goodput)}`,
      );
      granularity.set(v.granularity == null ? "–" : three(v.granularity), roundNote(board));
      setMoney(board, money, million, whole);
      setSame(board, same);
    },
  };

  function setMoney(board, money, million, whole) {
    const m = board.money;
    if (m.usd == null) {
      money.set("–", "no price known");
      million.set("–", "give --usd-per-h");
      whole.set("–", "no price known");
      setAttribute(money.value, "data-tone", null);
      return;
    }
    const part = m.is_priced ? "" : `${percent(m.priced_hours / m.machine_hours)} of hours priced`;
    money.set(usd(m.usd), costNote(m, part));
    const share = m.budget_usd > 0 ? m.usd / m.budget_usd : 0;
    setAttribute(money.value, "data-tone", share >= 1 ? "bad" : share >= 0.8 ? "warn" : null);
    million.set(
      usd(m.usd_per_million),
      part || (m.egress_usd > 0 ? `traffic ${percent(m.egress_usd / m.usd)} of the cost` : "samples so far"),
    );
    if (!m.forecast)
      whole.set("–", part || (board.complete ? "complete" : board.ended ? "over" : board.dead_since_s != null ? "dead" : m.left_s != null ? "a price or a peer's log is missing" : "no goal or no speed yet"));
    else whole.set(usd(m.forecast.likely), `${usd(m.forecast.low)} to ${usd(m.forecast.high)}`);
  }
}

/// Below the dollars so far. part: of how many hours the price is known; empty: of all.
export function costNote(m, part) {
  const rate = m.usd_per_h == null ? "" : `${usd(m.usd_per_h)}/h`;
  const budget = m.budget_usd == null ? "" : `budget ${usd(m.budget_usd)}`;
  return [rate, budget, part].filter(Boolean).join(" · ") || "in all";
}

function lossNote(board) {
  return board.samples > 0 ? plural(board.samples, "sample") : "";
}

function roundNote(board) {
  const last = board.rounds.filter((round) => round.comm_s != null).at(-1);
  if (!last) return "no round yet";
  const hidden = board.speed.hidden == null ? "" : `, ${percent(board.speed.hidden)} hidden`;
  return `${duration(last.calc_s)} + ${duration(last.comm_s)}${hidden}`;
}

/// The newest round after which two peers or more told their parameters' digest; else the newest that one told.
function toldByMost(board) {
  const told = new Map();
  for (const peer of board.peers) {
    if (peer.digest && !isGone(peer)) told.set(peer.digest_round, (told.get(peer.digest_round) ?? 0) + 1);
  }
  const compared = (peers) => Number(peers > 1);
  const [round, peers] = [...told].sort((a, b) => compared(b[1]) - compared(a[1]) || b[0] - a[0])[0] ?? [0, 0];
  return { round, peers };
}

function setSame(board, same) {
  const { round, peers } = toldByMost(board);
  if (board.identical == null) {
    same.set("–", board.peers.some(isApart) ? "two histories" : "no round applied yet");
    setAttribute(same.value, "data-tone", null);
  } else if (board.identical) {
    same.set(
      "✓ identical",
      peers > 1 ? `on ${plural(peers, "peer")}, round ${count(round)}` : "by all digests told so far",
    );
    setAttribute(same.value, "data-tone", "good");
  } else {
    same.set("✕ differ", "peers of one round hold other values");
    setAttribute(same.value, "data-tone", "bad");
  }
}

/// Whom the run waits for, and why; else the last thing that happened to it.
export function waitingLine() {
  const sign = h("span");
  const text = h("span", { class: "text" });
  const since = h("span", { class: "since" });
  const element = h("div", { class: "waiting", id: "waiting", role: "status" }, sign, text, since);
  const show = (tone, state, words, when) => {
    setAttribute(element, "data-tone", tone);
    if (sign.dataset.state !== state) {
      sign.dataset.state = state;
      sign.replaceChildren(shape(state));
    }
    setText(text, words);
    setText(since, when);
  };
  return {
    element,
    /// lost_s: since when there is no connection; null: there is one
    set(board, silent, now_s, lost_s) {
      const here = board.peers.filter((peer) => !isGone(peer));
      const wait = worstWait(board);
      const quiet = here.filter((peer) => silent.has(peer.peer)).map((peer) => peer.peer);
      if (board.complete)
        return show(
          null,
          "left",
          `The run is complete: ${plural(board.samples, "sample")} in ${plural(board.round, "round")}.`,
          dateTime(board.now_s),
        );
      if (board.ended)
        return show(
          null,
          "left",
          `The run is over: ${board.ended}, in round ${count(board.round)}${board.last_round ? ` of ${count(board.last_round)}` : ""}.`,
          dateTime(board.now_s),
        );
      if (lost_s != null && !isOver(board))
        return show("warn", "silent", "No connection: what stands below is old.", `since ${clock(lost_s)}`);
      if (!board.peers.length) return show(null, "starting", "No peer has told of itself yet.", "");
      if (!here.length)
        return show("bad", "lost", `All peers are gone; the last round is ${count(board.round)}.`, "");
      if (wait) {
        const who = wait.waiting.length === here.length ? "all peers" : peerNames(wait.waiting);
        return show(
          wait.peers.length ? "warn" : null,
          quiet.length ? "silent" : "averaging",
          sentence(wait.text),
          `${who}, for ${countdown(now_s - wait.since_s)}`,
        );
      }
      if (quiet.length)
        return show("bad", "silent", `${sentence(peerNames(quiet))} gave no sign of life for seconds.`, "");
      if (!board.round) return show(null, "computing", "Waiting for the first round to end.", "");
      return show(null, "computing", "Nobody waits: every peer is at work.", plural(here.length, "peer"));
    },
  };
}
