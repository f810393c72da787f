// SPDX-License-Identifier: Apache-2.0
// What peers do: the word, the shape and the colour of each state. Colours: Okabe and Ito, which people with any
// kind of colour vision tell apart; the shape and the word say the same without colour.

export const STATES = {
  starting: { word: "starting", shape: "ring", text: "it has a process, but no state of the run yet" },
  computing: { word: "calculating", shape: "disc", text: "it accumulates gradients" },
  averaging: { word: "averaging", shape: "diamond", text: "from the end of its own work to the commit" },
  applying: {
    word: "applying",
    shape: "triangle",
    text: "the update, an evaluation or other work between rounds",
  },
  fetching: { word: "state transfer", shape: "down", text: "it takes the state of the run" },
  leaving: { word: "leaving", shape: "half", text: "it has a notice or was told to leave" },
  left: { word: "left", shape: "dash", text: "on its own will, or the run is complete" },
  lost: { word: "lost", shape: "cross", text: "others count it out" },
  silent: { word: "silent", shape: "bang", text: "no sign of life for seconds, and not counted out yet" },
};

export const LANE_STATES = ["computing", "averaging", "applying", "fetching", "leaving", "lost"];

const KINDS = {
  joined: { word: "joined", state: "computing" },
  notice: { word: "notice", state: "leaving" },
  handed_over: { word: "handed over", state: "leaving" },
  left: { word: "left", state: "left" },
  lost: { word: "lost", state: "lost" },
  resumed: { word: "resumed", state: "fetching" },
};

export const wordOf = (state) => STATES[state]?.word ?? state;

export const kindOf = (kind) => KINDS[kind] ?? { word: String(kind).replaceAll("_", " "), state: "starting" };

/// No round comes any more, as far as the board knows.
export const isOver = (board) => Boolean(board.complete || board.ended || board.dead_since_s != null);

/// It trains on in another history than the run (docs/protocol.md).
export const isApart = (peer) => /\bapart\b/.test(peer.ended);

export const isGone = (peer) => peer.state === "left" || peer.state === "lost";

/// The order of a list of states by how much they want to be seen.
export const urgencyOf = (state) =>
  ["lost", "silent", "leaving", "fetching", "starting", "averaging", "applying", "computing", "left"].indexOf(
    state,
  );
