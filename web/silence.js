// SPDX-License-Identifier: Apache-2.0
// Which peers have fallen silent. Live peers tell of themselves once a second, peers of a log folder only when
// something happens: so a peer is silent when it misses its own usual interval, as seen since the page is open.

const LEAST_S = 2;
const KEPT = 8;

export class Silence {
  #peers = new Map();

  /// Learns from a board; says who is silent in it: a set of ids.
  take(board) {
    const silent = new Set();
    for (const peer of board.peers) {
      const seen = this.#peers.get(peer.peer) ?? { heard_s: 0, gaps: [] };
      if (seen.heard_s > 0 && peer.heard_s > seen.heard_s) {
        seen.gaps = [...seen.gaps, peer.heard_s - seen.heard_s].slice(-KEPT);
      }
      seen.heard_s = peer.heard_s;
      this.#peers.set(peer.peer, seen);
      if (isSilent(peer, seen.gaps, board.now_s)) silent.add(peer.peer);
    }
    return silent;
  }
}

function isSilent(peer, gaps, now_s) {
  if (peer.state === "left" || peer.state === "lost" || gaps.length < 2) return false;
  return now_s - peer.heard_s > Math.max(LEAST_S, 2 * Math.max(...gaps));
}
