// SPDX-License-Identifier: Apache-2.0
// What a run's page says would change: node --test web/test

import assert from "node:assert/strict";
import test from "node:test";

import { errorSoFar, measured, whatIf } from "../model.js";
import { BOARDS } from "./boards.js";

const close = (a, b, what) =>
  assert.ok(Math.abs(a - b) <= 1e-6 * Math.abs(b), `${what}: ${a}, the program says ${b}`);

test("without a change the what-if is the run as it is", () => {
  const run = measured(BOARDS.four());
  const now = whatIf(run, { peers: run.n, bandwidth: 1, tbs: run.tbs });
  close(now.calc_s, run.tbs / run.speed, "calculation");
  assert.equal(run.n, 4);
});

test("more peers calculate faster and average longer; bandwidth shortens averaging alone", () => {
  const run = measured(BOARDS.four());
  const now = whatIf(run, { peers: 4, bandwidth: 1, tbs: run.tbs });
  const more = whatIf(run, { peers: 8, bandwidth: 1, tbs: run.tbs });
  assert.ok(Math.abs(more.calc_s - now.calc_s / 2) < 1e-9 && more.comm_s > now.comm_s);
  const wide = whatIf(run, { peers: 4, bandwidth: 4, tbs: run.tbs });
  assert.ok(wide.comm_s < now.comm_s && wide.calc_s === now.calc_s);
  assert.equal(whatIf(run, { peers: 1, bandwidth: 1, tbs: run.tbs }).comm_s, 0);
});

test("the model speaks of the rounds with as many peers as there are now", () => {
  const board = BOARDS.four();
  for (const round of board.rounds.slice(0, 50)) Object.assign(round, { contributors: [1, 2], calc_s: 99 });
  const run = measured(board);
  assert.equal(run.n, 4);
  assert.ok(run.rounds < 12 && run.speed > 100, `${run.rounds} ${run.speed}`);
});

test("what stores send or get is no part of the averaged bytes", () => {
  const board = BOARDS.four();
  const without = measured(board).mb;
  board.links.push({ from: "b2", to: "aws:us-east-1:a", store: "b2", bytes: 1e12 });
  assert.equal(measured(board).mb, without);
});

test("the error so far judges earlier rounds by later ones", () => {
  const slower = BOARDS.four();
  const later = slower.rounds.slice(-20);
  const delay = (round, i) => (round.committed_s += 10 * (i + 1));
  later.forEach(delay);
  assert.ok(errorSoFar(slower).error > errorSoFar(BOARDS.four()).error + 0.5);
});

test("no error is told from the few rounds since a peer was lost", () => {
  const board = BOARDS.four();
  const lost = board.rounds.slice(0, -7);
  for (const round of lost) round.contributors = [1, 2, 3, 4, 5];
  assert.equal(errorSoFar(board), null);
});

test("the error so far compares the model with the rounds that were", () => {
  const so_far = errorSoFar(BOARDS.four());
  assert.ok(Math.abs(so_far.error) < 0.2);
  close(so_far.error, so_far.predicted / so_far.measured - 1, "error");
  assert.equal(errorSoFar(BOARDS.before()), null);
});
