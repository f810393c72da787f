// SPDX-License-Identifier: Apache-2.0
// The parts of the page that need no browser: node --test web/test

import assert from "node:assert/strict";
import fs from "node:fs";
import test from "node:test";

import { answersOf } from "../answers.js";
import { decimate, keptIndices } from "../decimate.js";
import {
  bytes,
  count,
  digits,
  duration,
  elapsed,
  mbit,
  measure,
  peerName,
  peerNames,
  percent,
  si,
  signed,
  usd,
} from "../format.js";
import { costNote } from "../header.js";
import { moneyText } from "../links.js";
import { placeLabels } from "../labels.js";
import { found, hit, layOut, moved, nameOf, windowOf } from "../lane_layout.js";
import { placeOf } from "../places.js";
import { equalEarth, toPicture } from "../projection.js";
import { evaluated, evaluationsOf, increasing, marksOf, pricesOf, seriesOf } from "../rounds.js";
import { Silence } from "../silence.js";
import { scaleOf } from "../ticks.js";
import { worstWait } from "../waits.js";
import { usdPerHour } from "../what_if.js";
import { BOARDS } from "./boards.js";

test("numbers have units, separators and three digits, and never an exponent", () => {
  assert.equal(digits(1234.5), "1,235");
  assert.equal(digits(0.01234), "0.0123");
  assert.equal(count(99_999), "99,999");
  assert.equal(count(1_234_567), "1.23 M");
  assert.equal(si(1130, "B"), "1.13 kB");
  assert.equal(si(999_999, "B"), "1.00 MB");
  assert.equal(bytes(1.5e9), "1.50 GB");
  assert.equal(mbit(812), "812 Mbit/s");
  assert.equal(usd(0.000123), "$0.000123");
  assert.equal(usd(12.3456), "$12.35");
  assert.equal(usd(12_345), "$12,345");
  assert.equal(percent(0.0312), "3.1 %");
  assert.equal(signed(0.5), "+50 %");
  for (let power = -6; power < 15; ++power)
    for (const show of [digits, count, bytes, usd, (x) => si(x, "")])
      assert.ok(!/e[+-]/.test(show(1.13 * 10 ** power)));
});

test("a tiny loss has an exponent, and is not 0", () => {
  assert.equal(measure(5.981e-14), "5.981e-14");
  assert.equal(measure(-0.00002), "-2.000e-5");
  assert.equal(measure(0.4788), "0.4788");
  assert.equal(measure(0), "0");
  const board = BOARDS.four();
  for (const round of board.rounds) if (round.loss != null) round.loss *= 1e-13;
  assert.match(answerTo(board, "Does it learn?").answer, /^Yes: loss \d\.\d{3}e-14 over /);
});

test("what is not known is a dash, not NaN", () => {
  for (const show of [measure, digits, count, bytes, usd, percent, duration, mbit])
    for (const value of [null, undefined, NaN, Infinity]) assert.equal(show(value), "–");
});

test("times are read at a glance", () => {
  assert.equal(duration(0.42), "0.4 s");
  assert.equal(duration(59.6), "1 min 00 s");
  assert.equal(duration(7500), "2 h 05 min");
  assert.equal(duration(273_600), "3 d 4 h");
  assert.equal(elapsed(90, 30), "1:30");
  assert.equal(elapsed(7200, 1800), "2:00 h");
});

test("ids of 16 digits are shortened, small ones are not", () => {
  assert.equal(peerName(3), "peer 3");
  assert.equal(peerName(9007199254740991), "peer …0991");
  assert.equal(peerName(3000), "peer p3");
  assert.equal(peerName(12002), "peer p12-r2");
  assert.equal(peerNames([1, 2, 3, 4, 5, 6]), "peers 1, 2, 3, 4 and 2 more");
});

test("ticks are 1, 2 or 5 times a power of ten", () => {
  assert.deepEqual(scaleOf(0, 1130, 5).values, [0, 500, 1000, 1500]);
  for (let i = 1; i < 500; ++i) {
    const scale = scaleOf(0, 1.37 ** (i % 60) * 0.001, 3 + (i % 7));
    const lead = scale.step / 10 ** Math.floor(Math.log10(scale.step) + 1e-9);
    assert.ok(
      [1, 2, 5].some((one) => Math.abs(lead - one) < 1e-6),
      `${scale.step}`,
    );
  }
});

test("10,000 points become few, and no peak is lost", () => {
  const ys = Array.from({ length: 10_000 }, (_, i) => Math.sin(i / 300));
  ys[4_321] = 99;
  ys[8_765] = -99;
  const kept = decimate(
    ys.map((_, i) => i),
    ys,
    1200,
  );
  assert.ok(kept.ys.length <= 1200);
  assert.ok(kept.ys.includes(99) && kept.ys.includes(-99));
  assert.equal(kept.xs[0], 0);
  assert.equal(kept.xs.at(-1), 9_999);
  assert.deepEqual(keptIndices([1, null, 3], 10), [0, 1, 2]);
});

const overlaps = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

test("labels do not lie on each other, however close their points are", () => {
  const points = Array.from({ length: 12 }, (_, i) => ({
    x: 200 + i,
    y: 100 + (i % 3),
    w: 70,
    h: 16,
    radius: 6,
  }));
  const boxes = placeLabels(points, points, { x: 0, y: 0, w: 600, h: 400 }).filter(Boolean);
  assert.ok(boxes.length >= 8);
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => assert.ok(!overlaps(a, b))));
});

test("lanes cover the last rounds, and none reaches out of the picture", () => {
  for (const [name, make] of Object.entries(BOARDS)) {
    const layout = layOut(make(), 900);
    for (const row of layout.rows)
      for (const box of row.boxes) assert.ok(box.x >= 0 && box.x + box.w <= 901, `${name} ${box.x} ${box.w}`);
  }
  assert.equal(layOut(BOARDS.sixty_four(), 900).rows.length, 64);
  assert.ok(layOut(BOARDS.sixty_four(), 900).height < 900);
  assert.equal(layOut(BOARDS.before(), 900).rows.length, 0);
});

test("lanes of a run that is over end with it, however long the page stays open", () => {
  const board = BOARDS.four();
  const committed = board.rounds.findLast((round) => round.committed_s != null).committed_s;
  const later = (words) => windowOf({ ...board, ...words, now_s: board.now_s + 3600 });
  assert.equal(later({}).to, board.now_s + 3600);
  for (const words of [{ complete: true }, { ended: "its budget is spent" }]) {
    const { from, to } = later(words);
    assert.ok(to > committed && to < committed + 0.1 * (committed - from), `${to - committed}`);
  }
  const dead = later({ dead_since_s: committed + 30 });
  assert.ok(dead.to >= committed + 30 && dead.to < committed + 40);
});

test("a stretch is found by mouse and by arrow keys, with whom it waited for", () => {
  const layout = layOut(BOARDS.four(), 900);
  const at = moved(layout, null, "ArrowRight");
  const box = layout.rows[at.row].boxes[at.box];
  assert.deepEqual(hit(layout, box.x + box.w / 2, layout.rows[at.row].y + 4), at);
  assert.equal(hit(layout, 1, 10_000), null);
  assert.equal(moved(layout, at, "ArrowDown").row, at.row + 1);
  assert.equal(moved(layout, { row: 0, box: 0 }, "ArrowLeft").box, 0);
  const reasons = layout.rows.flatMap((row) => row.boxes.map((one) => one.span.why)).filter(Boolean);
  assert.match(reasons[0], /^waiting for peer/);
});

test("a chosen stretch stays chosen while rounds pass", () => {
  const board = BOARDS.four();
  const before = layOut(board, 900);
  const at = { row: 1, box: before.rows[1].boxes.length - 2 };
  const name = nameOf(before, at);
  const { peer } = before.rows[1].peer;
  const passed = before.rows[1].boxes[3].span.from_s;
  board.spans = board.spans.filter((span) => span.peer !== peer || span.from_s >= passed);
  board.now_s += 1.5;
  const after = layOut(board, 900);
  const now = found(after, name);
  assert.notEqual(now.box, at.box);
  assert.deepEqual(after.rows[now.row].boxes[now.box].span, before.rows[1].boxes[at.box].span);
  assert.equal(found(after, { ...name, round: 1 }), null);
  assert.equal(found(after, null), null);
});

test("text has contrast on cards and on the page, by day and by night", () => {
  const css = fs.readFileSync(new URL("../base.css", import.meta.url), "utf8");
  const themes = [...css.matchAll(/^:root[^{]*\{([^}]*)\}/gm)].map((match) =>
    Object.fromEntries([...match[1].matchAll(/--([\w-]+): (#\w{6});/g)].map((one) => [one[1], one[2]])),
  );
  assert.ok(themes.length >= 2);
  for (const theme of themes)
    for (const text of ["ink", "soft", "faint", "good", "warn", "bad"])
      for (const ground of ["card", "page"])
        assert.ok(contrast(theme[text], theme[ground]) >= 4.5, `${text} on ${ground}: ${theme[text]}`);
});

/// WCAG 2.1, relative luminance.
function contrast(one, other) {
  const luminance = (colour) => {
    const parts = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16) / 255);
    const [r, g, b] = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

test("a peer that misses its own interval is silent, one of a slow log is not", () => {
  const silence = new Silence();
  const board = (now_s, heard_s, state = "computing") => ({ now_s, peers: [{ peer: 1, state, heard_s }] });
  for (let s = 1; s <= 4; ++s) assert.equal(silence.take(board(s, s)).size, 0);
  assert.equal(silence.take(board(5.5, 4)).size, 0);
  assert.equal(silence.take(board(6.1, 4)).size, 1);
  assert.equal(silence.take(board(6.2, 4, "lost")).size, 0);
  const slow = new Silence();
  for (let s = 30; s <= 120; s += 30) assert.equal(slow.take(board(s, s)).size, 0);
  assert.equal(slow.take(board(140, 120)).size, 0);
});

test("the wait that holds up most peers is told, numbers in it apart", () => {
  const peer = (id, text, since_s, peers) => ({
    peer: id,
    state: "computing",
    wait: text ? { text, since_s, peers } : null,
  });
  const wait = worstWait({
    peers: [
      peer(1, "waiting for peer 3: x, 5 of 9", 10, [3]),
      peer(2, "waiting for peer 3: x, 6 of 9", 8, [3]),
      peer(4, "saving a checkpoint: 9 MB", 1, []),
      peer(5, null),
    ],
  });
  assert.deepEqual(wait.waiting, [1, 2]);
  assert.equal(wait.since_s, 8);
  assert.equal(worstWait({ peers: [peer(1, null)] }), null);
});

test("the course of cost ends at what the board says and never falls", () => {
  for (const name of ["four", "troubled", "long"]) {
    const board = BOARDS[name]();
    const { usd: course } = seriesOf(board);
    course.forEach((x, i) => assert.ok(i === 0 || x >= course[i - 1] - 1e-9));
    assert.ok(
      course.at(-1) <= board.money.usd && course.at(-1) > 0.9 * board.money.usd,
      `${name}: ${course.at(-1)} ${board.money.usd}`,
    );
  }
  assert.ok(seriesOf(BOARDS.no_price()).usd.every((x) => x === null));
});

test("prices by zone have a step where a machine comes or goes", () => {
  const life = (peer, site, usd_per_h, from, to) => ({
    peer,
    site,
    usd_per_h,
    state: to < 100 ? "lost" : "computing",
    since_s: to,
    usage: { hours: (to - from) / 3600 },
  });
  const board = {
    now_s: 100,
    rounds: [{ round: 1, begun_s: 10 }],
    peers: [
      life(1, "aws:a", 1, 0, 40),
      life(2, "aws:a", 2, 20, 100),
      life(3, "gcp:b", 3, 40, 60),
      life(4, "gcp:b", 5, 2, 8), // gone before the first round
      { ...life(5, "gcp:b", null, 0, 100), usd_per_h: null },
    ],
  };
  assert.deepEqual(pricesOf(board), {
    at: [0, 10, 30, 50, 90],
    sites: [
      { name: "aws:a", machines: [1, 2, 1, 1, 1], usd_per_h: [1, 1.5, 2, 2, 2] },
      { name: "gcp:b", machines: [0, 0, 1, 0, 0], usd_per_h: [null, null, 3, null, null] },
    ],
  });
  assert.deepEqual(pricesOf(BOARDS.no_price()), { at: [], sites: [] });
});

test("three machines at one price have one price", () => {
  const board = BOARDS.four();
  for (const peer of board.peers) Object.assign(peer, { site: "", usd_per_h: 0.1 });
  const [{ usd_per_h }] = pricesOf(board).sites;
  assert.deepEqual(new Set(usd_per_h.filter((price) => price != null)), new Set([0.1]));
});

test("dollars of a position are those of its peers, else in proportion to them", () => {
  const answers = { peers: [2, 4], as_it_is: { peers: 2 }, rounds: [[[[10, 4]]], [[[20, 5]]]] };
  assert.equal(usdPerHour(answers, [1, 0, 0], 3), 6);
  assert.ok(Number.isNaN(usdPerHour(answers, [1, 0, 0], null)));
  const usd = [null, { machines: 2, of_round: 0.001, of_sample: 0.00001 }];
  assert.ok(Math.abs(usdPerHour({ ...answers, usd }, [1, 0, 0]) - (2 + 0.72 + 0.72)) < 1e-12);
  usd[1].machines = null;
  assert.ok(Number.isNaN(usdPerHour({ ...answers, usd }, [1, 0, 0])), "a machine without a price");
});

test("old rounds that were thinned out change neither speed nor cost", () => {
  const board = BOARDS.four();
  const whole = seriesOf(board);
  board.rounds = board.rounds.filter((round) => round.round > 30 || round.round % 5 === 0);
  const thin = seriesOf(board);
  const i = whole.round.indexOf(20);
  const k = thin.round.indexOf(20);
  assert.ok(Math.abs(thin.speed[k] / whole.speed[i] - 1) < 0.1);
  assert.ok(Math.abs(thin.usd[k] / whole.usd[i] - 1) < 0.1, `${thin.usd[k]} ${whole.usd[i]}`);
});

test("the series by round rise in time, and losses are marked", () => {
  const series = increasing({ at: [1, 2, 2, 1.5, 3], loss: [5, 4, 3, 2, 1] });
  assert.deepEqual(series, { at: [1, 2, 3], loss: [5, 4, 1] });
  assert.deepEqual(
    marksOf(BOARDS.troubled())
      .filter((one) => one.kind === "lost")
      .map((one) => one.peer),
    [3],
  );
});

test("what a program measured is a curve by name, and part of the answer", () => {
  const board = BOARDS.four();
  const begin = board.rounds[0].begun_s;
  const told = (round, name, value, peer = 1) => ({ round, at_s: begin + round, peer, name, value });
  board.evaluations = [told(10, "accuracy", 0.81), told(20, "accuracy", 0.93), told(20, "accuracy", 0.5, 2), told(20, "nll", 0.4)];
  assert.deepEqual(evaluated(board), ["accuracy", "nll"]);
  assert.deepEqual(evaluationsOf(board, "accuracy"), { at: [10, 20], round: [10, 20], evaluation: [0.81, 0.93] });
  const learns = answersOf(board, new Set()).find((one) => one.question === "Does it learn?").answer;
  assert.match(learns, /; accuracy 0\.93 after round 20, 0\.81 after 10; nll 0\.4 after round 20\.$/);
});

test("every region of the catalog has a place on the map", () => {
  const cells = (file) =>
    fs
      .readFileSync(new URL(`../../catalog/${file}`, import.meta.url), "utf8")
      .trim()
      .split("\n")
      .slice(1)
      .map((row) => row.split(","));
  const sites = new Set([
    ...cells("rtt.csv").flatMap((row) => row.slice(0, 2)),
    ...cells("offers.csv").map((row) => `${row[0]}:${row[1]}`),
  ]);
  assert.ok(sites.size > 60);
  for (const site of sites) assert.ok(placeOf(site), site);
  assert.equal(placeOf("lab:basement"), null);
});

test("the projection is true at its corners", () => {
  assert.deepEqual(equalEarth(0, 0), [0, 0]);
  assert.ok(Math.abs(equalEarth(0, 180)[0] - 1) < 1e-12);
  const picture = toPicture(800);
  const [x, y] = picture.at(51.5, 0);
  assert.ok(Math.abs(x - 400) < 1 && y > 0 && y < picture.height / 2);
});

test("what a link cost has its requests, and no rate of a burst of copies", () => {
  const read = { from: "b2", to: "x", store: "b2", bytes: 1e9, mbit_s: 8, usd_per_gb: 0.01, usd: 1, requests_usd: 2 };
  assert.equal(moneyText(read), "$0.036/h · $3.00");
  assert.equal(moneyText({ ...read, from: "x", to: "b2" }), "$3.00");
  assert.equal(moneyText({ ...read, requests_usd: null }), "1.00 GB");
  assert.equal(moneyText({ ...read, store: "", requests_usd: null }), "$0.036/h · $1.00");
});

test("a cost of a part of the hours says so, with a budget and without", () => {
  const money = { usd_per_h: null, budget_usd: null };
  assert.equal(costNote(money, ""), "in all");
  assert.equal(costNote(money, "33 % of hours priced"), "33 % of hours priced");
  assert.equal(costNote({ usd_per_h: 1.5, budget_usd: 5 }, "33 % of hours priced"), "$1.50/h · budget $5.00 · 33 % of hours priced");
});

const answerTo = (board, question, silent = new Set()) =>
  answersOf(board, silent).find((one) => one.question === question);

test("the first screen answers for a run that goes on", () => {
  const board = Object.values(BOARDS).map((make) => (typeof make === "function" ? make() : make))[0];
  for (const { answer } of answersOf(board, new Set())) assert.ok(answer && !/NaN|undefined|null/.test(answer), answer);
});

test("a dead run is said to be dead, and never has time left", () => {
  const live = Object.values(BOARDS).map((make) => (typeof make === "function" ? make() : make))[0];
  const board = {
    ...live,
    complete: false,
    ended: "",
    dead_since_s: live.now_s - 90,
    money: { ...live.money, left_s: null, forecast: null },
  };
  assert.match(answerTo(board, "Does it go on?").answer, /^No: dead since /);
  assert.match(answerTo(board, "When is it done?").answer, /^Never/);
  assert.match(answerTo(board, "What do I do?").answer, /command that began it/);
});

test("a run that its budget ended goes on with a larger one, and one that all have left as it is", () => {
  const over = { ...BOARDS.four(), ended: "its budget is spent" };
  assert.equal(answerTo(over, "Does it go on?").answer, "It is over: its budget is spent.");
  assert.equal(answerTo(over, "What do I do?").answer, "Raise budget_usd and start it again: it goes on from its checkpoint.");
  assert.match(answerTo({ ...over, ended: "all peers have left" }, "What do I do?").answer, /command that began it/);
});

test("a page without a connection knows nothing of a run that went on, and all of one that was over", () => {
  const board = BOARDS.four();
  const lost = (one) => answersOf(one, new Set(), board.now_s);
  const [goesOn, whenDone] = lost(board);
  assert.match(goesOn.answer, /^Not known since \d\d:\d\d:\d\d: the page has no connection/);
  assert.equal(goesOn.tone, "warn");
  assert.equal(whenDone.answer, "Not known.");
  for (const words of [{ complete: true }, { ended: "its budget is spent" }, { dead_since_s: board.now_s - 90 }])
    assert.deepEqual(lost({ ...board, ...words }), answersOf({ ...board, ...words }, new Set()));
});

test("a peer that trains apart is no loss whose command mends it, and parameters are not compared", () => {
  const board = BOARDS.apart();
  assert.match(answerTo(board, "Who is broken?").answer, /^Peer 2 is lost \(.*; apart from the others since round 13\)\.$/);
  assert.match(answerTo(board, "What do I do?").answer, /^Mend the network to peer 2: /);
  board.peers[1].ended = "silent for 2.1 s";
  assert.match(answerTo(board, "What do I do?").answer, /^The others go on\./);
});

test("a loss of some time ago is no present one, and not forgotten", () => {
  const board = BOARDS.troubled();
  for (const peer of board.peers) if (peer.state === "lost") peer.since_s = board.now_s - 625;
  const broken = answerTo(board, "Who is broken?");
  assert.equal(broken.answer, "Nobody was lost in the last ten minutes.");
  assert.equal(broken.tone, null);
  const own = answerTo({ ...board, own_delays: true }, "Who is broken?");
  assert.equal(own.answer, "Nobody was lost in the last ten minutes or is silent; who is slow: tw watch LOGS.");
});

test("several lost peers have commands of their own", () => {
  const board = BOARDS.troubled();
  for (const peer of board.peers.slice(1, 3)) Object.assign(peer, { state: "lost", since_s: board.now_s - 1 });
  assert.match(answerTo(board, "What do I do?").answer, /Start peers 2, 3 again with their commands, .* The last lines of peer 2: /);
});

test("the culprit of a delay is named with its cost, and what to do", () => {
  const live = Object.values(BOARDS).map((make) => (typeof make === "function" ? make() : make))[0];
  const delay = {
    cause: "loader",
    peer: 3,
    to: null,
    since_s: live.now_s - 60,
    round_s: 0.42,
    share: 0.2,
    seconds: 12,
    usd_per_h: 1.25,
    usd: 0.1,
    what: "the data loader of peer 3",
    remedy: "give its loader more workers, or keep its data nearer",
  };
  const board = { ...live, complete: false, dead_since_s: null, delays: [delay] };
  assert.match(answerTo(board, "Who is broken?").answer, /The data loader of peer 3 costs 0.4 s a round \(20 %, \$1.25\/h\)/);
  assert.match(answerTo(board, "What do I do?").answer, /more workers/);
  const over = { ...board, delays: [{ ...delay, since_s: null }] };
  assert.equal(answerTo(over, "Who is broken?").answer, "Nobody.");
  const ofOnePeer = answerTo({ ...over, own_delays: true }, "Who is broken?");
  assert.equal(ofOnePeer.answer, "Nobody is lost or silent; who is slow: tw watch LOGS.");
  assert.equal(ofOnePeer.tone, null, "the page of one peer does not know that all is well");
});

test("the last lines of a lost peer are a command to paste", () => {
  const board = { ...BOARDS.troubled(), dead_since_s: null, ended: "", complete: false, delays: [] };
  for (const peer of board.peers) if (peer.state === "lost") Object.assign(peer, { peer: 3002, since_s: board.now_s - 1 });
  assert.match(answerTo(board, "What do I do?").answer, /peer p3-r2 again .*: tw logs RUN p3 \| tail -n 20\.$/);
  for (const peer of board.peers) if (peer.state === "lost") peer.peer = 7;
  assert.match(answerTo(board, "What do I do?").answer, /peer 7 again .*: tail -n 20 LOGS\/events-7\.jsonl\.$/);
});
