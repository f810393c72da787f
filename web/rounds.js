// SPDX-License-Identifier: Apache-2.0
// Series over the time of the run, for the curves.

import { isGone } from "./states.js";

/// Seconds from the beginning of the first round in the board; 0: there is none.
export function beginOf(board) {
  return board.rounds.length ? board.rounds[0].begun_s : 0;
}

/// Times of machines that have a price: {site, from, to (seconds since 1970), usd_per_h}.
function pricedLives(board) {
  return board.peers
    .filter((peer) => peer.usd_per_h > 0)
    .map((peer) => {
      const to = isGone(peer) ? peer.since_s : board.now_s;
      return { site: peer.site, from: to - 3600 * peer.usage.hours, to, usd_per_h: peer.usd_per_h };
    });
}

/// Rounded: three machines at 0.1 have one price.
const meanPrice = (lives) =>
  Number((lives.reduce((sum, life) => sum + life.usd_per_h, 0) / lives.length).toPrecision(12));

/// Where machines ran, and their price: {at, sites}. at: when one came or went, seconds from the beginning of the first
/// round. sites, the one with most machine hours first: {name, machines, usd_per_h}, lists of values from then on;
/// usd_per_h: mean of its machines, null: it has none.
export function pricesOf(board) {
  const begin = beginOf(board) || board.now_s;
  const lives = pricedLives(board)
    .filter((life) => life.to > begin)
    .map((life) => ({ ...life, from: Math.max(life.from, begin) }));
  const times = lives.length ? lives.flatMap((life) => [life.from, life.to]).concat(board.now_s) : [];
  const at = [...new Set(times)].sort((a, b) => a - b);
  const bySite = new Map();
  for (const life of lives) {
    const name = life.site || "site not known";
    bySite.set(name, [...(bySite.get(name) ?? []), life]);
  }
  const hours = (of) => of.reduce((sum, life) => sum + life.to - life.from, 0);
  const sites = [...bySite].sort((a, b) => hours(b[1]) - hours(a[1]));
  return {
    at: at.map((time) => time - begin),
    sites: sites.map(([name, of]) => {
      // At the last of these times, those that are there.
      const there = at.map((time, i) =>
        of.filter((life) => life.from <= time && (time < life.to || (i === at.length - 1 && life.to === time))),
      );
      return {
        name,
        machines: there.map((some) => some.length),
        usd_per_h: there.map((some) => (some.length ? meanPrice(some) : null)),
      };
    }),
  };
}

/// Dollars from the beginning up to each of these seconds (since 1970): machines by price and time, from their
/// coming to their going; traffic and requests by samples. The end is what the board says. null: no price known.
export function usdAt(board, times, samples) {
  const { usd, machines_usd } = board.money;
  if (usd == null || !times.length) return null;
  const lives = pricedLives(board);
  const machines = (at) =>
    lives.reduce(
      (sum, life) => sum + (life.usd_per_h / 3600) * Math.max(0, Math.min(at, life.to) - life.from),
      0,
    );
  const whole = machines(board.now_s);
  const done = samples.reduce((sum, n) => sum + n, 0);
  let so_far = 0;
  return times.map((at, i) => {
    so_far += samples[i];
    const share = whole > 0 ? machines(at) / whole : done > 0 ? so_far / done : 0;
    return machines_usd * share + (done > 0 ? ((usd - machines_usd) * so_far) / done : 0);
  });
}

/// For each committed round its end, in seconds from the beginning, with loss, samples/s and $ (null: not known).
export function seriesOf(board) {
  const begin = beginOf(board);
  const series = { at: [], round: [], loss: [], speed: [], usd: [] };
  let before = null;
  for (const round of board.rounds) {
    if (round.committed_s == null) continue;
    // Old rounds are thinned out: the one before may not be there.
    const from = before?.round === round.round - 1 ? before.committed_s : round.begun_s;
    const took = round.committed_s - from;
    series.at.push(round.committed_s - begin);
    series.round.push(round.round);
    series.loss.push(round.loss ?? null);
    series.speed.push(took > 0 ? round.samples / took : null);
    before = round;
  }
  const ended = board.rounds.filter((round) => round.committed_s != null);
  const usd = usdAt(
    board,
    ended.map((round) => round.committed_s),
    // A round stands for those that were thinned out before it.
    ended.map((round, i) => round.samples * (i > 0 ? Math.max(1, round.round - ended[i - 1].round) : 1)),
  );
  series.usd = usd ?? ended.map(() => null);
  return series;
}

/// What was measured by this name: {at, round, evaluation}, seconds from the beginning of the first round; of
/// several peers the first one's.
export function evaluationsOf(board, name) {
  const begin = beginOf(board);
  const known = new Map();
  for (const one of board.evaluations) if (one.name === name && !known.has(one.round)) known.set(one.round, one);
  const told = [...known.values()].sort((a, b) => a.at_s - b.at_s);
  return {
    at: told.map((one) => one.at_s - begin),
    round: told.map((one) => one.round),
    evaluation: told.map((one) => one.value),
  };
}

/// Names of what was measured.
export const evaluated = (board) => [...new Set(board.evaluations.map((one) => one.name))].sort();

/// Rises only, as uPlot wants it: rounds of two histories may end in another order.
export function increasing(series) {
  const kept = [];
  let last = -Infinity;
  series.at.forEach((at, i) => {
    if (at > last) {
      kept.push(i);
      last = at;
    }
  });
  return Object.fromEntries(Object.entries(series).map(([name, list]) => [name, kept.map((i) => list[i])]));
}

/// Comings and goings: [{at, kind, peer}], seconds from the beginning.
export function marksOf(board) {
  const begin = beginOf(board);
  return board.interruptions
    .filter((one) => ["joined", "left", "lost"].includes(one.kind) && one.at_s > begin)
    .map((one) => ({ at: one.at_s - begin, kind: one.kind, peer: one.peer }));
}
