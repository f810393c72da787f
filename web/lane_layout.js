// SPDX-License-Identifier: Apache-2.0
// Where each stretch of a peer's time stands in the picture of lanes.

import { isOver } from "./states.js";

const ROUNDS = 8;
/// What is shown after the end, as a share of what is shown before it.
const AFTER = 0.05;

export function rowHeight(peers) {
  return peers <= 8 ? 30 : peers <= 16 ? 22 : peers <= 32 ? 16 : 12;
}

/// The last rounds: from the beginning of the oldest shown to now, or to the end of a run that is over.
export function windowOf(board, rounds = ROUNDS) {
  const shown = board.rounds.filter((round) => round.begun_s > 0).slice(-rounds);
  const spans = board.spans.map((span) => span.from_s);
  const oldest = spans.reduce((least, s) => Math.min(least, s), Infinity);
  const begin = shown.length ? shown[0].begun_s : oldest;
  const from = Math.max(begin, Number.isFinite(oldest) ? oldest : begin);
  if (!Number.isFinite(from) || board.now_s <= from) return null;
  return { from, to: isOver(board) ? Math.min(endOf(board, from), board.now_s) : board.now_s };
}

/// Just after the last commit, or when a dead run was heard last.
function endOf(board, from) {
  const committed = board.rounds.findLast((round) => round.committed_s != null)?.committed_s ?? from;
  const last = Math.max(committed, board.dead_since_s ?? committed);
  return last > from ? last + AFTER * (last - from) : board.now_s;
}

/// Lanes in the order of ids: {window, rows: [{peer, y, h, boxes: [{span, x, w}]}], commits: [{round, x}], height}.
export function layOut(board, width, rounds = ROUNDS) {
  const window = windowOf(board, rounds);
  if (!window) return { window: null, rows: [], commits: [], height: 0 };
  const scale = width / (window.to - window.from);
  const xOf = (s) => (Math.min(Math.max(s, window.from), window.to) - window.from) * scale;
  const byPeer = new Map();
  for (const span of board.spans) {
    if (span.to_s <= window.from || span.from_s >= window.to) continue;
    if (!byPeer.has(span.peer)) byPeer.set(span.peer, []);
    byPeer.get(span.peer).push(span);
  }
  const peers = board.peers.filter((peer) => byPeer.has(peer.peer) || !["left", "lost"].includes(peer.state));
  const h = rowHeight(peers.length);
  const rows = peers.map((peer, i) => ({
    peer,
    y: i * h,
    h,
    boxes: merged(byPeer.get(peer.peer) ?? []).map((span) => {
      const x = xOf(span.from_s);
      return { span, x, w: Math.max(1, xOf(span.to_s) - x) };
    }),
  }));
  const commits = board.rounds
    .filter((round) => round.committed_s >= window.from && round.committed_s <= window.to)
    .map((round) => ({ round: round.round, x: xOf(round.committed_s) }));
  const notices = board.interruptions
    .filter((one) => one.kind !== "joined" && one.at_s >= window.from && one.at_s <= window.to)
    .map((one) => ({ ...one, x: xOf(one.at_s), row: rows.findIndex((row) => row.peer.peer === one.peer) }))
    .filter((one) => one.row >= 0);
  return { window, rows, commits, notices, height: peers.length * h, scale };
}

/// In time; neighbours of one state, round and reason become one.
function merged(spans) {
  const sorted = [...spans].sort((a, b) => a.from_s - b.from_s);
  const out = [];
  for (const span of sorted) {
    const last = out.at(-1);
    if (
      last &&
      last.state === span.state &&
      last.round === span.round &&
      last.why === span.why &&
      span.from_s - last.to_s < 1e-3
    ) {
      last.to_s = Math.max(last.to_s, span.to_s);
    } else {
      out.push({ ...span });
    }
  }
  return out;
}

/// {row, box} under a point, as indices; null where there is nothing.
export function hit(layout, x, y) {
  const row = layout.rows.findIndex((one) => y >= one.y && y < one.y + one.h);
  if (row < 0) return null;
  const boxes = layout.rows[row].boxes;
  let best = -1;
  boxes.forEach((box, i) => {
    const slack = Math.max(0, (6 - box.w) / 2); // what is thinner than a finger is still found
    if (x >= box.x - slack && x < box.x + box.w + slack && (best < 0 || box.w < boxes[best].w)) best = i;
  });
  return best < 0 ? null : { row, box: best };
}

/// What names a stretch in every later layout: indices move as rounds pass.
export function nameOf(layout, at) {
  const row = layout.rows[at?.row];
  const span = row?.boxes[at.box]?.span;
  return span ? { peer: row.peer.peer, round: span.round, state: span.state, from_s: span.from_s } : null;
}

/// {row, box} of the stretch with this name; null once it is out of the picture.
export function found(layout, name) {
  const row = layout.rows.findIndex((one) => one.peer.peer === name?.peer);
  if (row < 0) return null;
  const far = (box) => Math.abs(box.span.from_s - name.from_s);
  const same = layout.rows[row].boxes.filter(
    ({ span }) => span.round === name.round && span.state === name.state,
  );
  const nearest = same.sort((a, b) => far(a) - far(b))[0];
  return nearest ? { row, box: layout.rows[row].boxes.indexOf(nearest) } : null;
}

/// The stretch beside the chosen one: by arrow keys. Up and down go to the one of the next lane at that time.
export function moved(layout, at, key) {
  const rows = layout.rows;
  if (!rows.length) return null;
  if (!at || !rows[at.row]) return lastOf(rows, 0);
  const boxes = rows[at.row].boxes;
  if (key === "ArrowLeft") return { row: at.row, box: Math.max(0, at.box - 1) };
  if (key === "ArrowRight") return { row: at.row, box: Math.min(boxes.length - 1, at.box + 1) };
  if (key === "Home") return { row: at.row, box: 0 };
  if (key === "End") return { row: at.row, box: boxes.length - 1 };
  const step = key === "ArrowUp" ? -1 : 1;
  const middle = boxes[at.box] ? boxes[at.box].x + boxes[at.box].w / 2 : Infinity;
  for (let row = at.row + step; row >= 0 && row < rows.length; row += step) {
    if (!rows[row].boxes.length) continue;
    const box = rows[row].boxes.findIndex((one) => middle < one.x + one.w);
    return { row, box: box < 0 ? rows[row].boxes.length - 1 : box };
  }
  return at;
}

function lastOf(rows, from) {
  const row = rows.findIndex((one, i) => i >= from && one.boxes.length);
  return row < 0 ? null : { row, box: rows[row].boxes.length - 1 };
}
