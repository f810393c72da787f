// SPDX-License-Identifier: Apache-2.0
// What a run would do with other peers, bandwidth and batches, from what it measured of itself: its averaging in
// proportion to the bytes that a peer sends (docs/planner.md).

const SHARE_OF_BOUND = 0.98;
const ROUND_S = 0.02;
const PROCESSOR_S_PER_GB = 0.98;
const UPDATE_S_PER_M_PARAMS = (7 * 4e6) / 10e9;

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
  const processor_s = (PROCESSOR_S_PER_GB * 2 * part(peers) * run.mb) / 1e3;
  const update_s = (UPDATE_S_PER_M_PARAMS * run.mb) / BYTES_PER_PARAM;
  const comm_s = peers < 2 ? 0 : Math.max(wire_s, processor_s) + ROUND_S + update_s;
  const calc_s = (tbs * run.n) / (run.speed * peers);
  return {
    calc_s,
    comm_s,
    samples_per_s: tbs / (calc_s + comm_s),
    granularity: comm_s > 0 ? calc_s / comm_s : Infinity,
  };
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
