// SPDX-License-Identifier: Apache-2.0
// The model of `tw predict` for the pattern tradewind (src/plan/model/round_time.cc, docs/planner.md): what a round
// takes by calculation and averaging. web/test compares it with what the program prints.

const SHARE_OF_BOUND = 0.98;
const ROUND_S = 0.02;
const PROCESSOR_S_PER_GB = 0.98;
const ROUND_TRIPS = 4;
const UPDATE_S_PER_M_PARAMS = (7 * 4e6) / 10e9;

/// The largest value of the last variable where rows * v <= limits, v >= 0, limits >= 0: the simplex method,
/// by Bland's rule. rows: [{factors, limit}].
export function largestLast(rows) {
  const n = rows[0].factors.length;
  const m = rows.length;
  const table = rows.map((row, i) => [...row.factors, ...rows.map((_, j) => (i === j ? 1 : 0)), row.limit]);
  const aim = new Array(n + m + 1).fill(0);
  aim[n - 1] = -1;
  for (let steps = 0; steps < 10000; ++steps) {
    const column = aim.findIndex((value, i) => i < n + m && value < -1e-12);
    if (column < 0) return aim[n + m];
    let leaving = -1;
    for (let i = 0; i < m; ++i) {
      if (table[i][column] <= 1e-12) continue;
      const ratio = table[i][n + m] / table[i][column];
      if (leaving < 0 || ratio < table[leaving][n + m] / table[leaving][column] - 1e-15) leaving = i;
    }
    if (leaving < 0) return Infinity;
    const pivot = table[leaving][column];
    table[leaving] = table[leaving].map((value) => value / pivot);
    for (const row of [...table, aim]) {
      if (row === table[leaving] || row[column] === 0) continue;
      const factor = row[column];
      row.forEach((value, k) => (row[k] = value - factor * table[leaving][k]));
    }
  }
  return aim[n + m];
}

/// Seconds for a vector of one byte. groups: [{count, card}], card in bytes/s each way of a peer;
/// pair[g][h]: bytes/s from a peer of one group to one of another.
export function flatSecondsPerByte(groups, pair) {
  const z = groups.length;
  const n = groups.reduce((sum, group) => sum + group.count, 0);
  const unit = Math.max(...groups.map((group) => group.card));
  const rows = [];
  const all = { factors: new Array(z + 1).fill(0), limit: 0 };
  all.factors[z] = 1;
  for (let g = 0; g < z; ++g) {
    all.factors[g] = -groups[g].count;
    const card = { factors: new Array(z + 1).fill(0), limit: groups[g].card / unit };
    card.factors[z] = 1;
    card.factors[g] = n - 2;
    rows.push(card);
    for (let h = 0; h < z; ++h) {
      if (g === h && groups[g].count === 1) continue;
      const row = { factors: new Array(z + 1).fill(0), limit: pair[g][h] / unit };
      row.factors[g] += 1;
      row.factors[h] += 1;
      rows.push(row);
    }
  }
  rows.push(all);
  return 1 / (largestLast(rows) * unit);
}

/// work: {params_m, bytes_per_param, tbs, delayed}; groups: [{count, card, samples_per_s}]; lines: {pair, rtt_s}.
/// The round by `tw predict`: {calc_s, comm_s, wire_s, overlap_s, samples_per_s, granularity}.
export function predictRound(work, groups, lines) {
  const n = groups.reduce((sum, group) => sum + group.count, 0);
  const speed = groups.reduce((sum, group) => sum + group.count * group.samples_per_s, 0);
  const mb = work.bytes_per_param * work.params_m;
  const wire_s = n < 2 ? 0 : (mb * 1e6 * flatSecondsPerByte(groups, lines.pair)) / SHARE_OF_BOUND;
  return roundOf({
    n,
    tbs: work.tbs,
    speed,
    mb,
    params_m: work.params_m,
    wire_s,
    rtt_s: lines.rtt_s,
    delayed: work.delayed,
  });
}

/// The parts of a round put together. wire_s: until the bytes have moved.
export function roundOf({ n, tbs, speed, mb, params_m, wire_s, rtt_s, delayed }) {
  const sent_mb = n < 2 ? 0 : (2 * (n - 1) * mb) / n;
  const processor_s = (PROCESSOR_S_PER_GB * sent_mb) / 1e3;
  const comm_s =
    n < 2
      ? 0
      : Math.max(wire_s, processor_s) + ROUND_S + ROUND_TRIPS * rtt_s + UPDATE_S_PER_M_PARAMS * params_m;
  const calc_s = tbs / speed;
  const overlap_s = delayed ? Math.min(comm_s, calc_s) : 0;
  return {
    calc_s,
    comm_s,
    wire_s,
    sent_mb,
    overlap_s,
    samples_per_s: tbs / (calc_s + comm_s - overlap_s),
    granularity: comm_s > 0 ? calc_s / comm_s : Infinity,
  };
}

const BYTES_PER_PARAM = 2;
const LAST = 50;

const sum = (values) => values.reduce((total, value) => total + value, 0);

const isMeasured = (round) =>
  round.committed_s != null && round.calc_s > 0 && round.samples > 0 && round.contributors.length > 0;

/// The last rounds with as many peers as the newest one: what the run is now.
function roundsNow(board) {
  const rounds = board.rounds.filter(isMeasured);
  const n = rounds.at(-1)?.contributors.length;
  return rounds.filter((round) => round.contributors.length === n).slice(-LAST);
}

/// What a run has measured of itself, over its last rounds: samples/s of a peer while it calculates, the time the
/// bytes of a round need by the measured bandwidth, the megabytes of the vector. null: not enough rounds yet.
export const measured = (board) => measuredOver(board, roundsNow(board));

function measuredOver(board, last) {
  if (last.length < 2) return null;
  const n = last[0].contributors.length;
  const samples = sum(last.map((round) => round.samples));
  const speed = samples / sum(last.map((round) => round.calc_s));
  const wires = last
    .filter((round) => round.bound_share > 0 && round.comm_s > 0)
    .map((round) => round.bound_share * round.comm_s);
  const comm_s = sum(last.map((round) => round.comm_s ?? 0)) / last.length;
  const total = sum(board.links.filter((link) => !link.store).map((link) => link.bytes));
  const mb = n > 1 && board.round > 0 ? total / board.round / (2 * (n - 1)) / 1e6 : 0;
  const wire_s = wires.length ? sum(wires) / wires.length : null;
  return { n, tbs: samples / last.length, speed, mb, comm_s, wire_s, rounds: last.length };
}

/// The prediction for this run with other peers, bandwidth (times) and target batch. Where no bound is known, the
/// measured averaging stands for the wire.
export function whatIf(run, { peers, bandwidth, tbs }) {
  const part = (n) => (n - 1) / n;
  const at_hand = run.wire_s == null ? (run.comm_s ?? 0) : run.wire_s / SHARE_OF_BOUND;
  const wire_s = run.n > 1 && peers > 1 ? (at_hand * part(peers)) / part(run.n) / bandwidth : 0;
  return roundOf({
    n: peers,
    tbs,
    speed: (run.speed * peers) / run.n,
    mb: run.mb,
    params_m: run.mb / BYTES_PER_PARAM,
    wire_s,
    rtt_s: 0,
    delayed: false,
  });
}

/// Fewer rounds, such as those right after a loss, would judge the model by their noise.
const LEAST_JUDGED = 5;

/// How far the model was from what this run then did: the first half of its last rounds is measured, and predicts
/// the samples/s of the second half. {predicted, measured, error: predicted / measured - 1, rounds}; null: not
/// enough rounds yet.
export function errorSoFar(board) {
  const now = roundsNow(board);
  const half = Math.ceil(now.length / 2);
  const run = measuredOver(board, now.slice(0, half));
  if (!run) return null;
  const ends = new Map(board.rounds.map((round) => [round.round, round.committed_s]));
  const timed = now.slice(half).filter((round) => ends.get(round.round - 1) != null);
  const took = sum(timed.map((round) => round.committed_s - ends.get(round.round - 1)));
  if (timed.length < LEAST_JUDGED || !(took > 0)) return null;
  const samples_per_s = sum(timed.map((round) => round.samples)) / took;
  const predicted = whatIf(run, { peers: run.n, bandwidth: 1, tbs: run.tbs }).samples_per_s;
  return {
    measured: samples_per_s,
    predicted,
    error: predicted / samples_per_s - 1,
    rounds: timed.length,
  };
}
