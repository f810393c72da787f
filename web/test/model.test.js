// SPDX-License-Identifier: Apache-2.0
// The page's copy of the model against the program itself: TRADEWIND_PROGRAM=build/tw node --test web/test

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import test from "node:test";

import { errorSoFar, largestLast, measured, predictRound, whatIf } from "../model.js";
import { BOARDS } from "./boards.js";

const PROGRAM = process.env.TRADEWIND_PROGRAM;

const CLUSTERS = [
  "model: CONV\ntbs: 32768\npeers: 8xT4@gcp:us\n",
  "model: CONV\ntbs: 8192\npeers: 2xA10@lambda:us-west\n",
  "model: RXLM\ntbs: 32768\npeers: 4xT4@gcp:us;4xT4@gcp:eu\n",
  "model: RN50\ntbs: 16384\npeers: 2xT4@gcp:us;3xT4@gcp:asia;1xT4@gcp:aus\n",
  "model: RXLM\ntbs: 65536\npeers: 16xT4@gcp:us\nmode: delayed\n",
];

/// What the frozen page of `tw predict` holds.
function predicted(text) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tw-model-"));
  try {
    fs.writeFileSync(path.join(folder, "cluster.yaml"), text);
    execFileSync(PROGRAM, [
      "predict",
      path.join(folder, "cluster.yaml"),
      "--pattern",
      "tradewind",
      "--html",
      path.join(folder, "page.html"),
    ]);
    const page = fs.readFileSync(path.join(folder, "page.html"), "utf8");
    return JSON.parse(/id="data">(.*?)<\/script>/s.exec(page)[1]).data;
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

const close = (a, b, what) =>
  assert.ok(Math.abs(a - b) <= 1e-6 * Math.abs(b), `${what}: ${a}, the program says ${b}`);

test(
  "the model in the page is the model of tw predict",
  { skip: PROGRAM ? false : "TRADEWIND_PROGRAM is not set" },
  () => {
    for (const cluster of CLUSTERS) {
      const { prediction, inputs } = predicted(cluster);
      const round = predictRound(inputs.work, inputs.groups, inputs);
      for (const [mine, theirs] of [
        ["calc_s", "calc_s"],
        ["comm_s", "comm_s"],
        ["samples_per_s", "throughput_sps"],
        ["granularity", "granularity"],
        ["overlap_s", "overlap_s"],
      ])
        if (prediction[theirs] !== 0) close(round[mine], prediction[theirs], `${cluster} ${mine}`);
    }
  },
);

test("the simplex method finds the corner", () => {
  // max z: x + z <= 4, y + z <= 3, z <= x + y
  assert.ok(
    Math.abs(
      largestLast([
        { factors: [1, 0, 1], limit: 4 },
        { factors: [0, 1, 1], limit: 3 },
        { factors: [-1, -1, 1], limit: 0 },
      ]) -
        7 / 3,
    ) < 1e-9,
  );
});

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
