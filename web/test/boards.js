// SPDX-License-Identifier: Apache-2.0
// Boards as a program tells them (src/monitor/board/board.h), made up by a seed: for tests of the page without a run.
//
//     node web/test/boards.js KIND > board.json     KIND: a key of BOARDS

const BEGIN = 1_790_000_000;

function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const SITES = [
  "gcp:us-west1:b",
  "gcp:europe-west4:a",
  "aws:ap-northeast-1:c",
  "azure:uksouth:1",
  "lambda:us-south-1",
  "lab:basement",
];
const CARDS = ["8 cores, 1 x L4", "8 cores, 1 x T4", "12 cores, 1 x A10", "24 cores, no GPU"];

function peerOf(i, { sites, priced, now_s, round }) {
  const hours = (now_s - BEGIN) / 3600;
  return {
    peer: i + 1,
    site: SITES[i % sites],
    hardware: CARDS[i % CARDS.length],
    anchor: i === 0,
    state: "computing",
    since_s: now_s - 1.4 - (i % 3),
    heard_s: now_s - 0.4,
    round: round + 1,
    rounds: round,
    samples: round * 128,
    samples_per_s: 90 + 7 * (i % 5),
    usage: {
      hours: 0.4,
      cpu_s: 900,
      peak_memory: 1.2e9,
      bytes_sent: 1.1e8 * round,
      bytes_received: 1.1e8 * round,
    },
    gpu: CARDS[i % CARDS.length].includes(" x ") ? { busy: 0.93, memory: 11.2e9, memory_total: 24e9 } : null,
    digest: "5f2c1e",
    digest_round: round,
    notice: null,
    wait: null,
    usd_per_h: priced ? 0.21 + 0.1 * (i % 4) : null,
    ended: "",
  };
}

/// Rounds one after another, with spans of the last ones.
function course(peers, rounds, random, priced) {
  const list = [];
  const spans = [];
  const first = Math.max(1, rounds - 9999);
  let at = BEGIN;
  let usd = 0;
  for (let round = first; round <= rounds; ++round) {
    const calc_s = 3.1 + 0.5 * random() + (random() < 0.004 ? 4 : 0);
    const comm_s = 0.9 + 0.25 * random();
    const apply_s = 0.15;
    usd += ((calc_s + comm_s + apply_s) / 3600) * 0.36 * peers.length;
    const here = peers.map((peer) => peer.peer);
    list.push({
      round,
      begun_s: at,
      called_s: at + calc_s,
      committed_s: at + calc_s + comm_s,
      calc_s,
      comm_s,
      bound_share: 0.82 + 0.12 * random(),
      samples: 128 * peers.length,
      contributors: here,
      left_out: [],
      loss: 0.35 + 5.8 * Math.exp(-round / (rounds / 4)) + 0.12 * (random() - 0.5),
    });
    if (round > rounds - 9) {
      for (const peer of peers) {
        const mine = calc_s - 0.3 * random();
        spans.push({ peer: peer.peer, round, state: "computing", from_s: at, to_s: at + mine, why: "" });
        spans.push({
          peer: peer.peer,
          round,
          state: "averaging",
          from_s: at + mine,
          to_s: at + calc_s + comm_s,
          why:
            mine < calc_s - 0.25
              ? `waiting for peer ${here[round % here.length]}: gradients of leased microbatches`
              : "",
        });
        spans.push({
          peer: peer.peer,
          round,
          state: "applying",
          from_s: at + calc_s + comm_s,
          to_s: at + calc_s + comm_s + apply_s,
          why: "",
        });
      }
    }
    at += calc_s + comm_s + apply_s;
  }
  return { list, spans, at, usd };
}

function linksOf(sites, rounds) {
  const links = [];
  for (let a = 0; a < sites; ++a)
    for (let b = 0; b < sites; ++b) {
      if (a === b && sites > 1) continue;
      const bound = 320 + 90 * a + 40 * b;
      const bytes = 6.2e7 * rounds * (1 + 0.1 * a);
      links.push({
        from: SITES[a],
        to: SITES[b],
        bytes,
        mbit_s: bound * (0.2 + 0.12 * ((a + 2 * b) % 5)),
        bound_mbit_s: (a + b) % 4 === 3 ? null : bound,
        usd_per_gb: a === 5 ? null : 0.02 + 0.03 * a,
        usd: (bytes / 1e9) * (0.02 + 0.03 * a),
      });
    }
  return links;
}

function board({ peers: n, rounds, sites = 2, priced = true, seed = 7 }) {
  const random = randomOf(seed);
  const shell = Array.from({ length: n }, (_, i) => ({ peer: i + 1 }));
  const { list, spans, at, usd } = course(shell, rounds, random, priced);
  const now_s = at + 2.2;
  const peers = shell.map((_, i) => peerOf(i, { sites, priced, now_s, round: rounds }));
  for (const peer of peers)
    spans.push({ peer: peer.peer, round: rounds + 1, state: "computing", from_s: at, to_s: now_s, why: "" });
  list.push({
    round: rounds + 1,
    begun_s: at,
    called_s: null,
    committed_s: null,
    calc_s: null,
    comm_s: null,
    bound_share: null,
    samples: 0,
    contributors: [],
    left_out: [],
    loss: null,
  });
  const samples = 128 * n * rounds;
  const egress = 0.1 * usd;
  return {
    run: "8b41c9d2e07f",
    now_s,
    round: rounds,
    last_round: Math.ceil(rounds * 1.6),
    samples,
    speed: { samples_per_s: 118 * n * 0.23, goodput: 0.742, granularity: 3.31 },
    loss: list.at(-2)?.loss ?? null,
    identical: rounds > 0,
    dead_since_s: null,
    delays: [],
    own_delays: false,
    complete: false,
    peers,
    links: linksOf(sites, rounds),
    rounds: list.slice(-10000),
    spans,
    evaluations: [],
    interruptions: peers.map((peer, i) => ({
      kind: "joined",
      at_s: BEGIN + i * 0.01,
      round: 1,
      peer: peer.peer,
      detail: "",
    })),
    ledger: { committed: samples, handed_over: Math.round(samples / 100), again: 96, skipped: 0 },
    money: priced
      ? {
          machine_hours: 1.2,
          priced_hours: 1.2,
          machines_usd: usd,
          egress_usd: egress,
          requests_usd: 0.0004,
          usd_per_h: 0.36 * n,
          usd_per_million: ((usd + egress) / samples) * 1e6,
          forecast: { low: usd * 1.5, likely: usd * 1.7, high: usd * 2.2 },
          left_s: (at - BEGIN) * 0.6,
          budget_usd: null,
          usd: usd + egress + 0.0004,
          is_priced: true,
        }
      : {
          machine_hours: 1.2,
          priced_hours: 0,
          machines_usd: null,
          egress_usd: 0,
          requests_usd: 0,
          usd_per_h: null,
          usd_per_million: null,
          forecast: null,
          left_s: 1234,
          budget_usd: null,
          usd: null,
          is_priced: false,
        },
  };
}

/// Somebody is lost, somebody leaves, somebody joins, and others wait.
function troubled(n, rounds) {
  const one = board({ peers: n, rounds, sites: 3 });
  const now = one.now_s;
  const [lost, leaving, joining] = [one.peers[2], one.peers[1], one.peers[n - 1]];
  const cut = now - 6;
  Object.assign(lost, {
    state: "lost",
    since_s: now - 3,
    heard_s: cut,
    ended: "silent for 3.0 s",
    samples_per_s: 0,
  });
  one.spans = one.spans.filter((span) => span.peer !== lost.peer || span.from_s < cut);
  for (const span of one.spans) if (span.peer === lost.peer) span.to_s = Math.min(span.to_s, cut);
  one.spans.push({ peer: lost.peer, round: rounds + 1, state: "lost", from_s: cut, to_s: now, why: "" });
  Object.assign(leaving, {
    state: "leaving",
    since_s: now - 1.8,
    notice: { source: "aws", kind: "preempt", told_s: now - 1.8, deadline_s: now + 97 },
  });
  Object.assign(
    one.spans.findLast((span) => span.peer === leaving.peer),
    { state: "leaving", from_s: now - 1.8 },
  );
  Object.assign(joining, { state: "fetching", since_s: now - 7, rounds: 0, samples: 0, samples_per_s: 0 });
  one.spans = one.spans.filter((span) => span.peer !== joining.peer || span.from_s > now - 8);
  one.spans.push({
    peer: joining.peer,
    round: rounds,
    state: "fetching",
    from_s: now - 7,
    to_s: now,
    why: "waiting for peers 1, 2: the state of the run, 300.0 of 1020.0 MB at 210.0 MB/s",
  });
  const wait = {
    text: `waiting for peer ${lost.peer}: gradients of leased microbatches`,
    since_s: now - 4.2,
    peers: [lost.peer],
  };
  for (const peer of one.peers) if (peer.state === "computing") peer.wait = wait;
  one.interruptions.push({
    kind: "lost",
    at_s: now - 3,
    round: rounds + 1,
    peer: lost.peer,
    detail: "silent for 3.0 s",
  });
  one.interruptions.push({
    kind: "notice",
    at_s: now - 1.8,
    round: rounds + 1,
    peer: leaving.peer,
    detail: "aws: preempt in 120 s",
  });
  return one;
}

function beforeFirstRound() {
  const one = board({ peers: 3, rounds: 1 });
  return {
    ...one,
    round: 0,
    samples: 0,
    loss: null,
    identical: null,
    dead_since_s: null,
    delays: [],
    own_delays: false,
    rounds: [],
    spans: [],
    links: [],
    evaluations: [],
    interruptions: [],
    speed: { samples_per_s: 0, goodput: null, granularity: null },
    ledger: { committed: 0, handed_over: 0, again: 0, skipped: 0 },
    peers: one.peers.map((peer) => ({
      ...peer,
      state: "starting",
      round: 0,
      rounds: 0,
      samples: 0,
      samples_per_s: 0,
      usage: { ...peer.usage, bytes_sent: 0 },
      wait: { text: "waiting for 1 more peer to begin: 3 of 4 are here", since_s: one.now_s - 5, peers: [] },
    })),
    money: {
      ...one.money,
      usd_per_million: null,
      forecast: null,
      usd: 0.0002,
      machines_usd: 0.0002,
      left_s: null,
    },
  };
}

function allLost() {
  const one = board({ peers: 4, rounds: 20 });
  for (const peer of one.peers)
    Object.assign(peer, {
      state: "lost",
      ended: "silent for 5.0 s",
      since_s: one.now_s - 9,
      heard_s: one.now_s - 14,
    });
  for (const peer of one.peers)
    one.interruptions.push({
      kind: "lost",
      at_s: one.now_s - 9,
      round: 21,
      peer: peer.peer,
      detail: "silent for 5.0 s",
    });
  return one;
}

/// One peer was cut off and trains on by itself; one that is known by its own words alone does so, too.
function apart() {
  const one = board({ peers: 4, rounds: 20 });
  Object.assign(one.peers[1], {
    state: "lost",
    ended: "silent for 2.1 s; apart from the others since round 13",
    since_s: one.now_s - 20,
    round: 13,
    samples_per_s: 0,
  });
  one.peers[2].ended = "alone since round 13";
  one.identical = null;
  return one;
}

const HOSTILE = `</script><img src=x onerror="document.title='owned'"><!-- `;

function hostile() {
  const one = board({ peers: 4, rounds: 8 });
  one.peers[0].site = HOSTILE;
  one.peers[1].hardware = HOSTILE;
  one.peers[1].peer = 9007199254740991;
  one.peers[2].wait = { text: HOSTILE, since_s: one.now_s - 3, peers: [] };
  one.interruptions.push({ kind: "lost", at_s: one.now_s, round: 1, peer: 4, detail: HOSTILE });
  one.links[0].from = HOSTILE;
  return one;
}

export const BOARDS = {
  four: () => board({ peers: 4, rounds: 60 }),
  troubled: () => troubled(5, 60),
  sixty_four: () => troubled(64, 400),
  long: () => board({ peers: 8, rounds: 10_000, sites: 4 }),
  no_price: () => board({ peers: 4, rounds: 12, priced: false }),
  six_sites: () => board({ peers: 12, rounds: 30, sites: 6 }),
  before: beforeFirstRound,
  all_lost: allLost,
  apart,
  hostile,
};

if (process.argv[1]?.endsWith("boards.js")) {
  const make = BOARDS[process.argv[2]];
  if (!make)
    throw new Error(`boards.js ${process.argv[2]}: expected one of ${Object.keys(BOARDS).join(", ")}`);
  process.stdout.write(JSON.stringify(make()));
}
