// SPDX-License-Identifier: Apache-2.0
// Elements without a framework. Texts are texts: nothing of a run is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(
    ...children.flat().filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/// h("p", {class: "note"}, "text", element)
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/// Sets a text when it is another one: what stays is not touched, so selections and readers stay calm.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
}

export function setClass(element, name, on) {
  if (element.classList.contains(name) !== on) element.classList.toggle(name, on);
}

const rowsOf = new WeakMap();

/// Brings the children of `parent` to those of `items`: make(item) once for each key, update(element, item) always.
export function keyed(parent, items, keyOf, make, update) {
  if (!rowsOf.has(parent)) rowsOf.set(parent, new Map());
  const rows = rowsOf.get(parent);
  const seen = new Set();
  let at = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    seen.add(key);
    let element = rows.get(key);
    if (!element) {
      element = make(item);
      rows.set(key, element);
    }
    update(element, item);
    if (element === at) at = at.nextElementSibling;
    else parent.insertBefore(element, at);
  }
  for (const [key, element] of rows) {
    if (seen.has(key)) continue;
    element.remove();
    rows.delete(key);
  }
}

/// A part of the page: a heading, a note beside it, a body.
export function panel(name, title, note = "") {
  const heading = h("h2", { id: `${name}-title` }, title);
  const aside = h("span", { class: "note", id: `${name}-note` }, note);
  const tools = h("span", { class: "tools" });
  const body = h("div", { class: "body" });
  const element = h(
    "section",
    { id: name, class: "panel", "aria-labelledby": `${name}-title` },
    h("header", {}, heading, aside, tools),
    body,
  );
  return { element, body, tools, note: aside };
}

/// A number with its name: {element, set(value, note)}.
export function tile(label, hint) {
  const value = h("div", { class: "value" }, "–");
  const note = h("div", { class: "sub" }, "\u00a0");
  const element = h("div", { class: "tile", title: hint }, h("div", { class: "label" }, label), value, note);
  return {
    element,
    value,
    set(text, sub = "\u00a0") {
      setText(value, text);
      setText(note, sub || "\u00a0");
    },
  };
}

export function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/// Calls back whenever the width of an element changes, once at least.
export function onWidth(element, call) {
  let width = -1;
  new ResizeObserver(() => {
    const now = Math.floor(element.clientWidth);
    if (now === width || now === 0) return;
    width = now;
    call(now);
  }).observe(element);
}

/// Draws in device pixels, in units of CSS pixels.
export function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, hh] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== hh) {
    canvas.width = w;
    canvas.height = hh;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
