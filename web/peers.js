// SPDX-License-Identifier: Apache-2.0
// The table of peers.

import { h, keyed, panel, setAttribute, setClass, setText } from "./dom.js";
import { bytes, count, countdown, plural, shortId, three, usd } from "./format.js";
import { shape } from "./shapes.js";
import { isGone, urgencyOf, wordOf } from "./states.js";
import { kindOfWait, worstWait } from "./waits.js";

const COLUMNS = [
  { key: "peer", name: "Peer", value: (p) => p.peer },
  { key: "state", name: "State", value: (p) => urgencyOf(p.shown) },
  { key: "site", name: "Site", value: (p) => p.site },
  { key: "hardware", name: "Hardware", value: (p) => p.hardware },
  { key: "round", name: "Round", number: true, value: (p) => p.round },
  { key: "speed", name: "Samples/s", number: true, value: (p) => p.samples_per_s, down: true },
  { key: "samples", name: "Samples", number: true, value: (p) => p.samples, down: true },
  { key: "sent", name: "Sent", number: true, value: (p) => p.usage.bytes_sent, down: true },
  { key: "usd", name: "$/h", number: true, value: (p) => p.usd_per_h ?? -1, down: true },
  { key: "why", name: "Waits for, notice, end", value: (p) => p.wait?.since_s ?? Infinity },
];

export function peersPanel() {
  const part = panel("peers", "Peers", "");
  const view = { sort: "peer", down: false, all: false, board: null, silent: new Set(), now_s: 0 };
  const heads = COLUMNS.map((column) => {
    const button = h("button", { type: "button" }, column.name);
    const head = h("th", { scope: "col", class: column.number ? "number" : "" }, button);
    button.addEventListener("click", () => {
      view.down = view.sort === column.key ? !view.down : Boolean(column.down);
      view.sort = column.key;
      draw();
    });
    return head;
  });
  const body = h("tbody");
  const more = h("button", { class: "plain", type: "button", hidden: true });
  more.addEventListener("click", () => {
    view.all = !view.all;
    draw();
  });
  part.tools.append(more);
  part.body.append(
    h(
      "div",
      { class: "scroll peers-scroll", tabindex: "0", role: "region", "aria-label": "Table of peers" },
      h("table", {}, h("thead", {}, h("tr", {}, heads)), body),
    ),
  );

  const draw = () => {
    if (!view.board) return;
    view.told = worstWait(view.board);
    heads.forEach((head, i) =>
      setAttribute(
        head,
        "aria-sort",
        COLUMNS[i].key !== view.sort ? "none" : view.down ? "descending" : "ascending",
      ),
    );
    const peers = view.board.peers.map((peer) => ({
      ...peer,
      shown: view.silent.has(peer.peer) ? "silent" : peer.state,
    }));
    const here = peers.filter((peer) => !isGone(peer));
    const recent = peers.filter(
      (peer) => !isGone(peer) || view.all || view.now_s - peer.since_s < 600 || peers.length <= 16,
    );
    more.hidden = recent.length === peers.length && !view.all;
    setText(
      more,
      view.all
        ? "Hide those that are gone"
        : `Show ${plural(peers.length - recent.length, "peer")} gone before`,
    );
    setText(
      part.note,
      `${plural(here.length, "peer")} here${peers.length > here.length ? `, ${count(peers.length - here.length)} gone` : ""}`,
    );
    const { value } = COLUMNS.find((column) => column.key === view.sort);
    recent.sort((a, b) => (view.down ? -1 : 1) * compare(value(a), value(b)) || a.peer - b.peer);
    keyed(
      body,
      recent,
      (peer) => peer.peer,
      makeRow,
      (row, peer) => fillRow(row, peer, view),
    );
  };
  return {
    element: part.element,
    set(board, silent, now_s) {
      Object.assign(view, { board, silent, now_s });
      draw();
    },
  };
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

function makeRow(peer) {
  const row = h("tr", { "data-peer": peer.peer });
  row.cells_ = COLUMNS.map((column) =>
    h("td", { class: column.key === "why" ? "wide" : column.number ? "number" : "" }),
  );
  const state = h("span", { class: "state" });
  row.sign = h("span");
  row.word = h("span");
  row.age = h("span", { class: "more" });
  row.why = h("span", { class: "why" });
  state.append(row.sign, row.word, row.age);
  row.cells_[1].append(state, row.why);
  row.cells_[0].append(
    h("span", { title: `peer ${peer.peer}` }, shortId(peer.peer)),
    peer.anchor ? h("span", { class: "badge", title: "on-demand or owned: it stays" }, "anchor") : "",
  );
  row.append(...row.cells_);
  return row;
}

function fillRow(row, peer, view) {
  const gone = isGone(peer);
  setAttribute(row, "data-state", peer.shown);
  setClass(row, "gone", peer.shown === "left");
  setClass(row, "bad", peer.shown === "lost" || peer.shown === "silent");
  setClass(
    row,
    "warn",
    peer.shown === "leaving" || (!gone && peer.notice != null && peer.shown !== "silent"),
  );
  if (row.sign.dataset.state !== peer.shown) {
    row.sign.dataset.state = peer.shown;
    row.sign.replaceChildren(shape(peer.shown));
  }
  setText(row.word, wordOf(peer.shown));
  setText(row.age, ageOf(peer, view.now_s));
  setText(row.why, whyOf(peer, view));
  const texts = [
    null,
    null,
    peer.site || "–",
    hardwareOf(peer),
    count(peer.round),
    gone ? "–" : three(peer.samples_per_s),
    count(peer.samples),
    bytes(peer.usage.bytes_sent),
    usd(peer.usd_per_h),
    whyOf(peer, view),
  ];
  texts.forEach((text, i) => text !== null && setText(row.cells_[i], text));
  setAttribute(row.cells_.at(-1), "title", texts.at(-1) || null);
}

function hardwareOf(peer) {
  const { hardware, gpu } = peer;
  if (!gpu || isGone(peer)) return hardware || "–";
  const busy = gpu.busy == null ? "" : `${Math.round(100 * gpu.busy)} % busy, `;
  const memory = `${bytes(gpu.memory)} of ${bytes(gpu.memory_total)}`;
  return `${hardware || "GPU"}: ${busy}${memory}`;
}

function ageOf(peer, now_s) {
  if (peer.shown === "silent") return countdown(now_s - peer.heard_s);
  if (isGone(peer)) return `${countdown(Math.max(0, now_s - peer.since_s))} ago`;
  const took = now_s - peer.since_s;
  return took >= 10 ? countdown(took) : "";
}

function whyOf(peer, view) {
  if (isGone(peer)) return peer.ended || "";
  const texts = [];
  if (peer.notice) texts.push(noticeText(peer.notice, view.now_s));
  if (peer.ended) texts.push(peer.ended);
  if (peer.wait) texts.push(waitText(peer.wait, view));
  const held = view.board.peers.filter(
    (other) => !isGone(other) && other.wait?.peers.includes(peer.peer),
  ).length;
  if (held) texts.push(`${plural(held, "peer")} ${held === 1 ? "waits" : "wait"} for it`);
  return texts.join("; ");
}

/// The reason that holds up many stands above the table once; their rows say only how long.
function waitText(wait, view) {
  const lasts = countdown(Math.max(0, view.now_s - wait.since_s));
  const { told } = view;
  const many = told.waiting.length > 2 && kindOfWait(told.text) === kindOfWait(wait.text);
  return many ? `waits as told above, for ${lasts}` : `${wait.text}, for ${lasts}`;
}

function noticeText(notice, now_s) {
  const what = `${notice.kind.replaceAll("_", " ")} notice of ${notice.source}`;
  if (notice.deadline_s == null) return what;
  const left = notice.deadline_s - now_s;
  return left >= 0 ? `${what}: ${countdown(left)} left` : `${what}: its time is over`;
}
