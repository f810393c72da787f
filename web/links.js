// SPDX-License-Identifier: Apache-2.0
// Traffic between sites: a matrix, and the same on a map.

import { h, panel, setAttribute, setText, svg, onWidth } from "./dom.js";
import { bytes, mbit, percent, plural, usd } from "./format.js";
import { placeLabels } from "./labels.js";
import { placeOf, regionName } from "./places.js";
import { toPicture } from "./projection.js";

export function linksPanel() {
  const part = panel("links", "Links between sites", "");
  const matrix = h("div", {
    class: "scroll",
    id: "matrix-view",
    role: "tabpanel",
    "aria-labelledby": "tab-matrix",
  });
  const map = h("div", {
    class: "map",
    id: "map-view",
    role: "tabpanel",
    "aria-labelledby": "tab-map",
    hidden: true,
  });
  const view = { tab: "matrix", board: null, width: 0 };
  const tabs = ["matrix", "map"].map((name) =>
    h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${name}`,
        "aria-controls": `${name}-view`,
        onclick: () => show(name),
      },
      name === "map" ? "Map" : "Matrix",
    ),
  );
  part.tools.append(h("span", { class: "tabs", role: "tablist", "aria-label": "View of the links" }, tabs));
  part.body.append(matrix, map);

  const show = (name) => {
    view.tab = name;
    matrix.hidden = name !== "matrix";
    map.hidden = name !== "map";
    tabs.forEach((tab) => setAttribute(tab, "aria-selected", tab.id === `tab-${name}`));
    draw();
  };
  tabs.forEach((tab, i) =>
    tab.addEventListener("keydown", (event) => {
      if (!/^Arrow(Left|Right)$/.test(event.key)) return;
      tabs[1 - i].focus();
      show(tabs[1 - i].id.slice(4));
    }),
  );
  const draw = () => {
    if (!view.board) return;
    const per_h = view.board.links.reduce((sum, link) => sum + (usdPerHour(link) ?? 0), 0);
    const total = view.board.links.reduce((sum, link) => sum + link.bytes, 0);
    setText(part.note, total > 0 ? `${bytes(total)} so far${per_h > 0 ? `, ${usd(per_h)}/h` : ""}` : "");
    if (view.tab === "matrix") drawMatrix(matrix, view.board);
    else drawMap(map, view.board, view.width);
  };
  onWidth(part.body, (width) => {
    view.width = width - 28;
    if (view.tab === "map") draw();
  });
  show("matrix");
  return {
    element: part.element,
    set(board) {
      view.board = board;
      draw();
    },
  };
}

const nameOf = (site) => site || "no site given";

/// At the speed of now. null: the tariff is not known, or the link has bursts of copies to a store.
export function usdPerHour(link) {
  if (link.usd_per_gb == null || (link.store && link.to === link.store)) return null;
  return ((link.mbit_s * 1e6) / 8 / 1e9) * 3600 * link.usd_per_gb;
}

function sitesOf(board) {
  return [...new Set(board.links.flatMap((link) => [link.from, link.to]))].sort();
}

function drawMatrix(box, board) {
  const sites = sitesOf(board);
  const key = sites.join("|");
  if (box.key !== key) {
    box.key = key;
    box.cells_ = new Map();
    box.replaceChildren(
      sites.length
        ? makeMatrix(sites, box.cells_)
        : h("p", { class: "empty" }, "No traffic yet."),
    );
  }
  for (const link of board.links) fillCell(box.cells_.get(`${link.from}|${link.to}`), link);
}

function makeMatrix(sites, cells) {
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, "from \\ to"),
    sites.map((site) => h("th", { scope: "col" }, nameOf(site))),
  );
  const rows = sites.map((from) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, nameOf(from)),
      sites.map((to) => {
        const cell = h("td", { class: "none" }, "·");
        cells.set(`${from}|${to}`, cell);
        return cell;
      }),
    ),
  );
  return h("table", { class: "matrix" }, h("thead", {}, head), h("tbody", {}, rows));
}

const shareText = (link, share) =>
  share == null ? "bound not measured" : `${percent(share)} of ${mbit(link.bound_mbit_s)}`;

/// What the bytes cost, with the requests to a store; the bytes where a price of either is not known.
export function moneyText(link) {
  const known = link.usd_per_gb != null && (!link.store || link.requests_usd != null);
  if (!known) return bytes(link.bytes);
  const per_h = usdPerHour(link);
  const so_far = usd(link.usd + (link.requests_usd ?? 0));
  return per_h == null ? so_far : `${usd(per_h)}/h · ${so_far}`;
}

function fillCell(cell, link) {
  if (!cell.parts) {
    const fill = h("i");
    cell.parts = {
      rate: h("span", { class: "rate" }),
      fill,
      gauge: h("span", { class: "gauge" }, fill),
      share: h("span", { class: "more" }),
      money: h("span", { class: "more" }),
    };
    cell.className = "";
    cell.replaceChildren(cell.parts.rate, cell.parts.gauge, cell.parts.share, cell.parts.money);
  }
  const share = link.bound_mbit_s > 0 ? link.mbit_s / link.bound_mbit_s : null;
  setText(cell.parts.rate, mbit(link.mbit_s));
  cell.parts.fill.style.width = `${100 * Math.min(1, share ?? 0)}%`;
  setText(cell.parts.share, link.store ? plural(link.requests, "request") : shareText(link, share));
  setText(cell.parts.money, moneyText(link));
  cell.parts.gauge.hidden = Boolean(link.store);
  setAttribute(
    cell,
    "title",
    `${nameOf(link.from)} to ${nameOf(link.to)}: ${bytes(link.bytes)} so far, ${mbit(link.mbit_s)}`,
  );
}

let landPath = null;

/// The coasts as one path in a picture so wide.
function land(width) {
  if (landPath?.width === width) return landPath;
  const world = JSON.parse(document.getElementById("land").textContent);
  const shapes = topojson.feature(world, world.objects.land);
  const picture = toPicture(width);
  const polygons = shapes.features.flatMap((one) =>
    one.geometry.type === "Polygon" ? [one.geometry.coordinates] : one.geometry.coordinates,
  );
  const rings = polygons.flat().filter((ring) => ring.some(([, latitude]) => latitude > -57));
  const d = rings
    .map(
      (ring) =>
        `M${ring
          .map(([lon, lat]) =>
            picture
              .at(Math.max(-57, lat), lon)
              .map((v) => v.toFixed(1))
              .join(" "),
          )
          .join("L")}Z`,
    )
    .join("");
  landPath = { width, picture, d };
  return landPath;
}

function drawMap(box, board, width) {
  if (width < 50) return;
  const { picture, d } = land(width);
  const points = new Map();
  const nowhere = new Set();
  const counts = peersBySite(board);
  for (const site of new Set([...sitesOf(board), ...counts.keys()])) {
    const place = placeOf(site);
    if (!place) nowhere.add(site);
    else if (!points.has(regionName(site)))
      points.set(regionName(site), { at: picture.at(...place), peers: 0, name: regionName(site) });
  }
  for (const [site, n] of counts) if (placeOf(site)) points.get(regionName(site)).peers += n;
  const arcs = arcsOf(board, points);
  const picked = svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${picture.height}`,
      role: "img",
      "aria-label": "Map of the sites and the traffic between them",
    },
    svg("path", { class: "land", d }),
    arcs,
    dots([...points.values()], width, picture.height),
  );
  const beside = nowhere.size
    ? h("p", { class: "hint" }, `Without a place on the map: ${[...nowhere].map(nameOf).join(", ")}.`)
    : "";
  const note = points.size
    ? ""
    : h(
        "p",
        { class: "hint" },
        "Give peers a site such as ",
        h("code", {}, "--site gcp:us-west1:b"),
        " to see them here.",
      );
  box.replaceChildren(picked, note, beside);
}

function peersBySite(board) {
  const counts = new Map();
  for (const peer of board.peers) {
    if (peer.state === "left" || peer.state === "lost") continue;
    counts.set(peer.site, (counts.get(peer.site) ?? 0) + 1);
  }
  return counts;
}

/// Each way of a pair bends to its own side; the width grows with the root of the rate.
function arcsOf(board, points) {
  const most = Math.max(1e-9, ...board.links.map((link) => link.mbit_s));
  return board.links
    .filter(
      (link) =>
        link.bytes > 0 &&
        placeOf(link.from) &&
        placeOf(link.to) &&
        regionName(link.from) !== regionName(link.to),
    )
    .map((link) => {
      const [x1, y1] = points.get(regionName(link.from)).at;
      const [x2, y2] = points.get(regionName(link.to)).at;
      const bend = 0.16;
      const [cx, cy] = [(x1 + x2) / 2 + (y2 - y1) * bend, (y1 + y2) / 2 - (x2 - x1) * bend];
      const share = link.bound_mbit_s > 0 ? Math.min(1, link.mbit_s / link.bound_mbit_s) : 0.5;
      return svg(
        "path",
        {
          class: "arc",
          d: `M${x1} ${y1}Q${cx} ${cy} ${x2} ${y2}`,
          "stroke-width": (1 + 4 * Math.sqrt(link.mbit_s / most)).toFixed(2),
          opacity: (0.3 + 0.6 * share).toFixed(2),
        },
        svg(
          "title",
          {},
          `${link.from} to ${link.to}: ${mbit(link.mbit_s)}${link.bound_mbit_s ? `, ${percent(share)} of what it carries` : ""}`,
        ),
      );
    });
}

function dots(points, width, height) {
  const radius = (point) => 4 + 1.6 * Math.sqrt(Math.max(1, point.peers));
  const texts = points.map((point) => (point.peers ? `${point.name} (${point.peers})` : point.name));
  const boxes = placeLabels(
    points.map((point, i) => ({
      x: point.at[0],
      y: point.at[1],
      w: texts[i].length * 6.1,
      h: 13,
      radius: radius(point),
    })),
    points.map((point) => ({ x: point.at[0], y: point.at[1], radius: radius(point) })),
    { x: 0, y: 0, w: width, h: height },
  );
  return points.flatMap((point, i) => [
    svg(
      "circle",
      { class: "site", cx: point.at[0], cy: point.at[1], r: radius(point).toFixed(1) },
      svg("title", {}, texts[i]),
    ),
    boxes[i] ? svg("text", { x: boxes[i].x, y: boxes[i].y + 10 }, texts[i]) : null,
  ]);
}
