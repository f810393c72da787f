// SPDX-License-Identifier: Apache-2.0
// The first thing to read: what an engineer asks of a run, and what the board answers.

import { h, keyed, setAttribute, setText } from "./dom.js";
import { count, countdown, dateTime, digits, duration, machineOf, peerName, peerNames, percent, plural, usd } from "./format.js";
import { evaluated, evaluationsOf } from "./rounds.js";
import { isGone } from "./states.js";
import { sentence, worstWait } from "./waits.js";

const RESUME = "Start it again with the command that began it: it resumes from its last checkpoint.";
const LEAST_LOSSES = 6;
const MOST_DELAYS = 3;
const RECENT_S = 600;

/// {question, answer, tone: good, warn, bad or null} of a board; silent: ids of peers.
export function answersOf(board, silent) {
  return [
    ["Does it go on?", ...goesOn(board, silent)],
    ["When is it done?", ...whenDone(board)],
    ["What will it cost?", ...whatCost(board)],
    ["Does it learn?", ...learns(board)],
    ["Who is broken?", ...whoIsBroken(board, silent)],
    ["What do I do?", ...whatToDo(board)],
  ].map(([question, answer, tone = null]) => ({ question, answer, tone }));
}

const lastCommit = (board) => board.rounds.findLast((round) => round.committed_s != null);

function goesOn(board, silent) {
  if (board.complete) return [`It is complete: ${plural(board.round, "round")}.`, "good"];
  if (board.ended) return [`It is over: ${board.ended}.`, "warn"];
  if (board.dead_since_s != null)
    return [
      `No: dead since ${dateTime(board.dead_since_s)}, after round ${count(board.round)}.`,
      "bad",
    ];
  const here = board.peers.filter((peer) => !isGone(peer)).length;
  const last = lastCommit(board);
  if (!last) return [here ? "It has not finished its first round." : "No peer has told of itself yet.", null];
  const wait = worstWait(board);
  const ago = `round ${count(board.round)} was decided ${countdown(Math.max(0, board.now_s - last.committed_s))} ago`;
  if (wait?.peers.length) return [`It waits: ${wait.text}; ${ago}.`, "warn"];
  return [`Yes, ${plural(here, "peer")}: ${ago}.`, silent.size ? "warn" : "good"];
}

function whenDone(board) {
  const { left_s } = board.money;
  if (board.complete || board.ended) return [dateTime(lastCommit(board)?.committed_s ?? board.now_s)];
  if (board.dead_since_s != null) return ["Never, as long as nobody resumes it.", "bad"];
  if (left_s == null)
    return [board.last_round ? "Not known before the third round." : "It has no last round: it ends when you end it."];
  return [`In ${duration(left_s)}, ${dateTime(board.now_s + left_s)}.`];
}

function whatCost(board) {
  const m = board.money;
  if (m.usd == null) return ["No price is known: give usd_per_h, or --plan PLAN.yaml.", null];
  const budget = m.budget_usd == null ? "" : `; the budget is ${usd(m.budget_usd)}`;
  const part = m.priced_hours < m.machine_hours * 0.999 ? " for the hours whose price is known" : "";
  const sofar = `${usd(m.usd)} so far${part}${m.usd_per_h == null || board.complete ? "" : `, ${usd(m.usd_per_h)}/h`}`;
  if (!m.forecast || board.complete) return [`${sofar}${budget}.`];
  const { low, likely, high } = m.forecast;
  const tone = m.budget_usd == null ? null : likely > m.budget_usd ? "bad" : high > m.budget_usd ? "warn" : "good";
  return [`${usd(likely)} in all (${usd(low)} to ${usd(high)}); ${sofar}${budget}.`, tone];
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/// "; accuracy 0.93 after round 500, 0.91 after 480"
function measured(board) {
  return evaluated(board)
    .map((name) => {
      const { round, evaluation } = evaluationsOf(board, name);
      const before = round.length > 1 ? `, ${digits(evaluation.at(-2), 4)} after ${count(round.at(-2))}` : "";
      return `; ${name} ${digits(evaluation.at(-1), 4)} after round ${count(round.at(-1))}${before}`;
    })
    .join("");
}

function learns(board) {
  const [text, tone = null] = lossFalls(board);
  return [text.replace(/\.$/, `${measured(board)}.`), tone];
}

/// The losses of the last rounds: those of the newer half against the older one.
function lossFalls(board) {
  if (board.identical === false) return ["The peers have different parameters: keep the logs, and stop it.", "bad"];
  const losses = board.rounds.map((round) => round.loss).filter((loss) => loss != null);
  if (board.loss == null && !losses.length)
    return [board.rounds.length ? "Its program tells no loss." : "No round yet.", null];
  if (losses.length < LEAST_LOSSES) return [`Loss ${digits(board.loss, 4)}; too few rounds for a trend.`, null];
  const half = Math.floor(losses.length / 2);
  const before = mean(losses.slice(0, half));
  const now = mean(losses.slice(half));
  const trend = `${digits(now, 4)} over the last ${plural(losses.length - half, "round")} shown, ${digits(before, 4)} before`;
  return now < before ? [`Yes: loss ${trend}.`, "good"] : [`The loss does not fall: ${trend}.`, "warn"];
}

const named = (board) =>
  board.dead_since_s != null
    ? []
    : board.delays.filter((delay) => delay.since_s != null).slice(0, MOST_DELAYS);

const money = (delay) => (delay.usd_per_h == null ? "" : `, ${usd(delay.usd_per_h)}/h`);

function whoIsBroken(board, silent) {
  if (board.complete) return ["Nobody needs to be."];
  const lost = board.peers.filter((peer) => peer.state === "lost" && board.now_s - peer.since_s < RECENT_S);
  const texts = lost.map((peer) => `${peerName(peer.peer)} is lost${peer.ended ? ` (${peer.ended})` : ""}`);
  if (silent.size) texts.push(`${peerNames([...silent])} gave no sign of life for seconds`);
  for (const delay of named(board))
    texts.push(
      `${delay.what} costs ${duration(delay.round_s)} a round (${percent(delay.share)}${money(delay)}) since ${dateTime(delay.since_s)}`,
    );
  if (!texts.length && board.own_delays) return ["Nobody is lost or silent; who is slow: tw watch LOGS."];
  if (!texts.length) return ["Nobody.", "good"];
  return [`${sentence(texts.join("; "))}.`, lost.length || silent.size ? "bad" : "warn"];
}

/// The command to paste: a launch has the output of its machines, others have their event logs.
function lastLines(id) {
  const machine = machineOf(id);
  return machine ? `tw logs RUN p${machine} | tail -n 20` : `tail -n 20 LOGS/events-${id}.jsonl`;
}

function whatToDo(board) {
  if (board.complete) return ["Read the report: tw report LOGS."];
  if (board.dead_since_s != null || board.ended) return [RESUME, board.ended ? null : "bad"];
  const [worst] = named(board);
  if (worst) return [`${sentence(`${worst.what}: ${worst.remedy}.`)}`, "warn"];
  const lost = board.peers.filter((peer) => peer.state === "lost" && board.now_s - peer.since_s < RECENT_S);
  if (lost.length)
    return [
      `The others go on. Start ${peerNames(lost.map((peer) => peer.peer))} again with its command, or let tw up --keep do it. Its last lines: ${lastLines(lost[0].peer)}.`,
      "warn",
    ];
  return ["Nothing."];
}

export function answers() {
  const list = h("dl", { class: "answers", id: "answers" });
  return {
    element: list,
    set(board, silent) {
      keyed(
        list,
        answersOf(board, silent),
        (one) => one.question,
        ({ question }) => {
          const row = h("div", {}, h("dt", {}, question), h("dd"));
          return row;
        },
        (row, { answer, tone }) => {
          setAttribute(row, "data-tone", tone);
          setText(row.lastElementChild, answer);
        },
      );
    },
  };
}
