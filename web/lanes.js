// SPDX-License-Identifier: Apache-2.0
// Swim lanes: what each peer did over the last rounds. By mouse and by keyboard.

import { cssColour, h, onWidth, panel, setText, sized } from "./dom.js";
import { clock, duration, peerName, percent, shortId } from "./format.js";
import { found, hit, layOut, moved, nameOf } from "./lane_layout.js";
import { scaleOf } from "./ticks.js";
import { kindOf, LANE_STATES, wordOf } from "./states.js";

const AXIS = 22;

export function lanesPanel() {
  const part = panel(
    "lanes",
    "Peers over the last rounds",
    "a line is a commit; hover or use the arrow keys",
  );
  const canvas = h("canvas", {
    tabindex: "0",
    role: "img",
    "aria-label": "Lanes of peers over the last rounds",
    "aria-describedby": "lane-words",
  });
  const tip = h("div", { class: "tip", hidden: true });
  const words = h("div", { class: "visually-hidden", id: "lane-words", "aria-live": "polite" });
  const empty = h("p", { class: "empty" }, "Waiting for the first round.");
  const box = h("div", { class: "lanes" }, canvas, tip, words);
  const legend = h("ul", { class: "legend" });
  part.body.append(empty, box, legend);
  const view = { board: null, silent: new Set(), layout: null, chosen: null, width: 0, pointer: null, name: null };
  view.names = { width: 0, isLong: false };

  const gutter = () => view.names.width;

  const draw = () => {
    if (!view.board || !view.width) return;
    view.names = namesOf(canvas.getContext("2d"), layOut(view.board, view.width).rows, view);
    view.layout = layOut(view.board, view.width - gutter() - 2);
    const there = view.layout.rows.length > 0;
    empty.hidden = there;
    box.hidden = !there;
    legend.hidden = !there;
    view.chosen = chosenNow();
    if (there) paint(sized(canvas, view.width, view.layout.height + AXIS), view, gutter());
    tell();
  };

  /// Under a mouse that rests, what has come there; of the keys' choice, where it has moved to.
  const chosenNow = () => {
    if (view.pointer) return hit(view.layout, view.pointer.x - gutter(), view.pointer.y);
    return found(view.layout, view.name);
  };

  const tell = () => {
    const row = view.layout.rows[view.chosen?.row];
    const span = row?.boxes[view.chosen.box];
    tip.hidden = !span;
    if (!span) return;
    const lines = linesOf(row.peer, span.span, roundOf(view.board, span.span.round));
    tip.replaceChildren(h("b", {}, lines[0]), ...lines.slice(1).flatMap((line) => [h("br"), line]));
    if (!view.pointer) setText(words, lines.join(". "));
    const x = gutter() + span.x + span.w / 2;
    tip.style.left = `${Math.max(0, Math.min(x - tip.offsetWidth / 2, view.width - tip.offsetWidth))}px`;
    const below = row.y + row.h + 6;
    tip.style.top = `${row.y > tip.offsetHeight + 8 ? row.y - tip.offsetHeight - 6 : below}px`;
  };

  /// pointer: where the mouse is in the canvas; name: the stretch that the keys chose; or neither.
  const choose = ({ pointer = null, name = null }) => {
    Object.assign(view, { pointer, name });
    draw();
  };

  canvas.addEventListener("pointermove", (event) => {
    const at = canvas.getBoundingClientRect();
    choose({ pointer: { x: event.clientX - at.left, y: event.clientY - at.top } });
  });
  canvas.addEventListener("pointerleave", () => choose({}));
  canvas.addEventListener("blur", () => choose({}));
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return choose({});
    if (!/^(Arrow|Home|End)/.test(event.key) || !view.layout) return;
    event.preventDefault();
    choose({ name: nameOf(view.layout, moved(view.layout, view.chosen, event.key)) });
  });
  onWidth(box, (width) => {
    view.width = width;
    draw();
  });
  const paintLegend = () =>
    legend.replaceChildren(...LANE_STATES.map((state) => h("li", {}, swatch(state), wordOf(state))));
  paintLegend();

  return {
    element: part.element,
    set(board, silent) {
      view.board = board;
      view.silent = silent;
      if (!view.width) {
        empty.hidden = board.spans.length > 0;
        box.hidden = false;
        view.width = Math.floor(part.body.clientWidth - 28);
      }
      draw();
    },
    restyle() {
      paintLegend();
      draw();
    },
  };
}

const isBad = (row, view) => row.peer.state === "lost" || view.silent.has(row.peer.peer);

function setNameFont(context, row, view) {
  const { fontFamily } = getComputedStyle(document.body);
  context.font = `${isBad(row, view) ? "600 " : ""}${row.h >= 16 ? 12 : 10}px ${fontFamily}`;
}

function nameIn(row, view, isLong) {
  const name = isLong ? peerName(row.peer.peer) : shortId(row.peer.peer);
  return isBad(row, view) ? `✕ ${name}` : name;
}

const NAME_GAP = 8;

/// How wide the names left of the lanes are: in words where there is room for all of them, in a third at most.
function namesOf(context, rows, view) {
  const widest = (isLong) =>
    Math.ceil(
      rows.reduce((most, row) => {
        setNameFont(context, row, view);
        return Math.max(most, context.measureText(nameIn(row, view, isLong)).width);
      }, 0),
    ) + NAME_GAP;
  const most = Math.floor(view.width / 3);
  const isLong = view.width >= 520 && rows.every((row) => row.h >= 16) && widest(true) <= most;
  return { isLong, width: Math.min(widest(isLong), most) };
}

const roundOf = (board, round) => board.rounds.find((one) => one.round === round);

/// Of averaging also what its round made of the bandwidth, and who was left out of it.
function linesOf(peer, span, round) {
  const lines = [
    `${peerName(peer.peer)}: ${wordOf(span.state)}, ${duration(span.to_s - span.from_s)}`,
    `Round ${span.round}, from ${clock(span.from_s)}`,
  ];
  if (peer.site) lines.push(peer.site);
  if (span.why) lines.push(span.why);
  if (span.state !== "averaging" || !round) return lines;
  if (round.bound_share > 0) lines.push(`${percent(round.bound_share)} of the bound by bandwidth`);
  for (const one of round.left_out) lines.push(`${peerName(one.peer)} was left out: ${one.why}`);
  return lines;
}

/// Colour is not the only difference: averaging is full height, the rest is narrower or hatched.
const LOOKS = {
  computing: { share: 0.56 },
  averaging: { share: 1 },
  applying: { share: 0.28 },
  fetching: { share: 0.8, hatch: "/" },
  leaving: { share: 0.8, hatch: "\\" },
  lost: { share: 0.8, hatch: "x" },
  left: { share: 0.12 },
  starting: { share: 0.2, hatch: "/" },
};

function fillBox(context, state, x, y, w, h) {
  const look = LOOKS[state] ?? LOOKS.starting;
  const tall = Math.max(2, Math.round(h * look.share));
  const top = y + Math.round((h - tall) / 2);
  context.fillStyle = cssColour(`--${state}`);
  context.fillRect(x, top, w, tall);
  if (!look.hatch || w < 3) return;
  context.save();
  context.beginPath();
  context.rect(x, top, w, tall);
  context.clip();
  context.strokeStyle = cssColour("--card");
  context.lineWidth = 1.4;
  context.globalAlpha = 0.75;
  context.beginPath();
  for (let at = x - tall; at < x + w + tall; at += 7) {
    if (look.hatch !== "\\") {
      context.moveTo(at, top + tall);
      context.lineTo(at + tall, top);
    }
    if (look.hatch !== "/") {
      context.moveTo(at, top);
      context.lineTo(at + tall, top + tall);
    }
  }
  context.stroke();
  context.restore();
}

function swatch(state) {
  const canvas = h("canvas", { "aria-hidden": "true" });
  fillBox(sized(canvas, 22, 12), state, 0, 0, 22, 12);
  return canvas;
}

function paint(context, view, gutter) {
  const { layout } = view;
  const font = getComputedStyle(document.body).fontFamily;
  paintAxis(context, view, gutter, font);
  for (const row of layout.rows) paintRow(context, row, view, gutter);
  for (const one of layout.notices) paintSign(context, one, layout.rows[one.row], gutter);
  const row = layout.rows[view.chosen?.row];
  const box = row?.boxes[view.chosen.box];
  if (!box) return;
  context.strokeStyle = cssColour("--ink");
  context.lineWidth = 1.5;
  context.strokeRect(gutter + box.x - 0.5, row.y + 1.5, Math.max(3, box.w) + 1, row.h - 3);
}

function paintAxis(context, view, gutter, font) {
  const { layout } = view;
  const span = layout.window.to - layout.window.from;
  context.font = `11px ${font}`;
  context.textBaseline = "alphabetic";
  context.fillStyle = cssColour("--faint");
  context.textAlign = "center";
  const scale = scaleOf(0, span, Math.max(2, Math.floor(view.width / 130)));
  for (const back of scale.values) {
    const x = gutter + (span - back) * layout.scale;
    if (back < 0 || back > span || x < gutter + 24) continue;
    context.textAlign = back === 0 ? "right" : "center";
    context.fillText(back === 0 ? clock(layout.window.to) : `-${duration(back)}`, x, layout.height + 15);
  }
  context.strokeStyle = cssColour("--line");
  context.lineWidth = 1;
  context.beginPath();
  for (const commit of layout.commits) {
    const x = Math.round(gutter + commit.x) + 0.5;
    context.moveTo(x, 0);
    context.lineTo(x, layout.height + 3);
  }
  context.stroke();
}

function paintRow(context, row, view, gutter) {
  const gone = ["left", "lost"].includes(row.peer.state);
  context.textAlign = "left";
  context.textBaseline = "middle";
  setNameFont(context, row, view);
  context.fillStyle = cssColour(isBad(row, view) ? "--bad" : gone ? "--faint" : "--soft");
  context.fillText(nameIn(row, view, view.names.isLong), 0, row.y + row.h / 2 + 0.5, gutter - NAME_GAP);
  const pad = row.h >= 16 ? 3 : 1.5;
  for (const box of row.boxes)
    fillBox(context, box.span.state, gutter + box.x, row.y + pad, Math.max(1, box.w - 0.5), row.h - 2 * pad);
}

/// A notice, a leave or a loss: a mark at its moment.
function paintSign(context, one, row, gutter) {
  const x = gutter + one.x;
  const y = row.y + row.h / 2;
  const r = Math.min(5, row.h / 3);
  context.strokeStyle = cssColour("--card");
  context.lineWidth = 4;
  const path = () => {
    context.beginPath();
    if (one.kind === "lost") {
      context.moveTo(x - r, y - r);
      context.lineTo(x + r, y + r);
      context.moveTo(x + r, y - r);
      context.lineTo(x - r, y + r);
    } else {
      context.moveTo(x, y - r - 1);
      context.lineTo(x, y + r + 1);
    }
    context.stroke();
  };
  path();
  context.strokeStyle = cssColour(one.kind === "lost" ? "--lost" : `--${kindOf(one.kind).state}`);
  context.lineWidth = 2;
  path();
}
