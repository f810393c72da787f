// SPDX-License-Identifier: Apache-2.0
// For whom a run waits, in one line.

/// The wait that holds up most peers, the oldest of these: {text, peers, waiting, since_s}; null: nobody waits.
export function worstWait(board) {
  const byText = new Map();
  for (const peer of board.peers) {
    if (!peer.wait || peer.state === "left" || peer.state === "lost") continue;
    const key = `${peer.wait.peers.join(",")}|${kindOfWait(peer.wait.text)}`;
    const wait = byText.get(key) ?? {
      text: peer.wait.text,
      peers: peer.wait.peers,
      waiting: [],
      since_s: Infinity,
    };
    wait.waiting.push(peer.peer);
    wait.since_s = Math.min(wait.since_s, peer.wait.since_s);
    byText.set(key, wait);
  }
  const waits = [...byText.values()];
  waits.sort(
    (a, b) =>
      (b.peers.length > 0) - (a.peers.length > 0) ||
      b.waiting.length - a.waiting.length ||
      a.since_s - b.since_s,
  );
  return waits[0] ?? null;
}

/// Without the numbers in it, which change while it lasts.
export const kindOfWait = (text) => text.replace(/[\d.]+/g, "#");

/// Its first letter large: it begins a line.
export function sentence(text) {
  return text ? text[0].toUpperCase() + text.slice(1) : "";
}
