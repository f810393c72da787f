// SPDX-License-Identifier: Apache-2.0
// The first thing to read: what an engineer asks of a run, and what the board answers.

import { h, keyed, setAttribute, setText } from "./dom.js";
import { clock, count, countdown, dateTime, duration, machineOf, measure, peerName, peerNames, percent, plural, usd } from "./format.js";
import { evaluated, evaluationsOf } from "./rounds.js";
import { isApart, isGone, isOver } from "./states.js";
import { sentence, worstWait } from "./waits.js";

const RESUME = "Start it again with the command that began it: it resumes from its last checkpoint.";
const RAISE = "Raise budget_usd and start it again: it goes on from its checkpoint.";
const LEAST_LOSSES = 6;
const NO_CONNECTION = "the page has no connection, and its peer may be gone.";
const MOST_DELAYS = 3;
const RECENT_S = 600;

/// {question, answer, tone: good, warn, bad or null} of a board; silent: ids of peers; lost_s: since when the page has
/// no connection, seconds since 1970, null: it has one.
export function answersOf(board, silent, lost_s = null) {
  const isKnown = lost_s == null || isOver(board);
  return [
    ["Does it go on?", ...(isKnown ? goesOn(board, silent) : [`Not known since ${clock(lost_s)}: ${NO_CONNECTION}`, "warn"])],
    ["When is it done?", ...(isKnown ? whenDone(board) : ["Not known."])],
    ["What will it cost?", ...whatCost(board)],
    ["Does it learn?", ...learns(board)],
    ["Who is broken?", ...(isKnown ? whoIsBroken(board, silent) : ["Not known."])],
    ["What do I do?", ...(isKnown ? whatToDo(board) : ["Look at the logs of its peers: tw watch LOGS.", "warn"])],
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
  const part = m.is_priced ? "" : " for the hours whose price is known";
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
      const before = round.length > 1 ? `, ${measure(evaluation.at(-2))} after ${count(round.at(-2))}` : "";
      return `; ${name} ${measure(evaluation.at(-1))} after round ${count(round.at(-1))}${before}`;
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
  if (losses.length < LEAST_LOSSES) return [`Loss ${measure(board.loss)}; too few rounds for a trend.`, null];
  const half = Math.floor(losses.length / 2);
  const before = mean(losses.slice(0, half));
  const now = mean(losses.slice(half));
  const trend = `${measure(now)} over the last ${plural(losses.length - half, "round")} shown, ${measure(before)} before`;
  return now < before ? [`Yes: loss ${trend}.`, "good"] : [`The loss does not fall: ${trend}.`, "warn"];
}

const named = (board) =>
  board.dead_since_s != null
    ? []
    : board.delays.filter((delay) => delay.since_s != null).slice(0, MOST_DELAYS);

const money = (delay) => (delay.usd_per_h == null ? "" : `, ${usd(delay.usd_per_h)}/h`);

const lostLately = (board) =>
  board.peers.filter((peer) => peer.state === "lost" && board.now_s - peer.since_s < RECENT_S);

function whoIsBroken(board, silent) {
  if (board.complete) return ["Nobody needs to be."];
  const lost = lostLately(board);
  const texts = lost.map((peer) => `${peerName(peer.peer)} is lost${peer.ended ? ` (${peer.ended})` : ""}`);
  if (silent.size) texts.push(`${peerNames([...silent])} gave no sign of life for seconds`);
  for (const delay of named(board))
    texts.push(
      `${delay.what} costs ${duration(delay.round_s)} a round (${percent(delay.share)}${money(delay)}) since ${dateTime(delay.since_s)}`,
    );
  if (!texts.length) return nobody(board);
  return [`${sentence(texts.join("; "))}.`, lost.length || silent.size ? "bad" : "warn"];
}

/// A loss of before stays in the table of peers.
function nobody(board) {
  const before = board.peers.some((peer) => peer.state === "lost");
  if (board.own_delays)
    return [`Nobody ${before ? "was lost in the last ten minutes or is" : "is lost or"} silent; who is slow: tw watch LOGS.`];
  return before ? ["Nobody was lost in the last ten minutes."] : ["Nobody.", "good"];
}

/// The command to paste: a launch has the output of its machines, others have their event logs.
function lastLines(id) {
  const machine = machineOf(id);
  return machine ? `tw logs RUN p${machine} | tail -n 20` : `tail -n 20 LOGS/events-${id}.jsonl`;
}

function whatToDo(board) {
  if (board.complete) return ["Read the report: tw report LOGS."];
  if (/program/.test(board.ended)) return ["Read the report: tw report LOGS."];
  if (/budget/.test(board.ended)) return [RAISE];
  if (board.dead_since_s != null || board.ended) return [RESUME, board.ended ? null : "bad"];
  const [worst] = named(board);
  if (worst) return [`${sentence(`${worst.what}: ${worst.remedy}.`)}`, "warn"];
  const apart = board.peers.filter(isApart).map((peer) => peer.peer);
  if (apart.length)
    return [`Mend the network to ${peerNames(apart)}: where two histories meet, the run keeps one of them.`, "warn"];
  const lost = lostLately(board);
  if (lost.length)
    return [
      `The others go on. Start ${peerNames(lost.map((peer) => peer.peer))} again with ${lost.length > 1 ? "their commands" : "its command"}, or let tw up --keep do it. ${lost.length > 1 ? `The last lines of ${peerName(lost[0].peer)}` : "Its last lines"}: ${lastLines(lost[0].peer)}.`,
      "warn",
    ];
  return ["Nothing."];
}

export function answers() {
  const list = h("dl", { class: "answers", id: "answers" });
  return {
    element: list,
    set(board, silent, lost_s) {
      keyed(
        list,
        answersOf(board, silent, lost_s),
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
