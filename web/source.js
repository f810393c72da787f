// SPDX-License-Identifier: Apache-2.0
// Where boards come from: the events of the program that serves this page, or the data inside a frozen page.

const STALE_S = 3.5;

/// What the page holds: null when it is the live one.
export function frozenData() {
  const text = document.getElementById("data").textContent.trim();
  return text ? JSON.parse(text) : null;
}

/// Calls take(board) for each snapshot. Gives link(): {state: waiting | live | lost, age_s}, by which a page says
/// whether what it shows still holds.
export function liveBoards(take) {
  const from = performance.now() / 1000;
  let heard_s = null;
  // A query, where the server gave one out, goes along; the page itself knows no secret.
  const events = new EventSource(`events${location.search}`);
  events.addEventListener("board", (event) => {
    heard_s = performance.now() / 1000;
    take(JSON.parse(event.data));
  });
  return {
    link() {
      const now = performance.now() / 1000;
      if (heard_s === null) return { state: now - from > STALE_S ? "lost" : "waiting", age_s: null };
      const age_s = now - heard_s;
      return { state: age_s > STALE_S || events.readyState === EventSource.CLOSED ? "lost" : "live", age_s };
    },
  };
}
