// SPDX-License-Identifier: Apache-2.0
// Numbers for people: units, separators, three digits that matter. A value that is not known is an en dash.

export const UNKNOWN = "–";

const known = (x) => typeof x === "number" && Number.isFinite(x);

/// 3 significant digits without an exponent: 0.0123, 1.23, 12.3, 123, 1,234.
export function digits(x, least = 3) {
  if (!known(x)) return UNKNOWN;
  if (x === 0) return "0";
  const whole = Math.floor(Math.log10(Math.abs(x))) + 1;
  const places = Math.min(8, Math.max(0, least - whole));
  return x.toLocaleString("en-US", { minimumFractionDigits: 0, maximumFractionDigits: places });
}

/// A loss, or what else a program measured: with an exponent where it is tiny.
export function measure(x, least = 4) {
  return known(x) && x !== 0 && Math.abs(x) < 1e-4 ? x.toExponential(least - 1) : digits(x, least);
}

/// As many places at every size, so that a number that changes keeps its width.
function fixed(x, places) {
  return x.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
}

const STEPS = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/// 1,234 up to 99,999; from there on 123 k, 1.23 M.
export function count(x) {
  if (!known(x)) return UNKNOWN;
  if (Math.abs(x) < 1e5) return fixed(Math.round(x), 0);
  return si(x, "");
}

/// 1.23 Mfoo; the unit follows a space.
export function si(x, unit) {
  if (!known(x)) return UNKNOWN;
  for (const [size, letter] of STEPS) {
    if (Math.abs(x) >= size * 0.99995) return `${three(x / size)} ${letter}${unit}`;
  }
  return unit ? `${three(x)} ${unit}` : three(x);
}

/// 1.23, 12.3, 123: three digits, also where they are zeros.
export function three(x) {
  if (!known(x)) return UNKNOWN;
  const size = Math.abs(x);
  if (size === 0) return "0";
  return fixed(
    x,
    size >= 99.95
      ? 0
      : size >= 9.995
        ? 1
        : size >= 0.9995
          ? 2
          : Math.min(8, 2 - Math.floor(Math.log10(size))),
  );
}

/// samples/s: 12.3, 1,482, 1.23 M.
export function rate(x) {
  return known(x) && Math.abs(x) < 1e5 ? three(x) : si(x, "");
}

export function usd(x) {
  if (!known(x)) return UNKNOWN;
  const size = Math.abs(x);
  const sign = x < 0 ? "-$" : "$";
  if (size === 0) return "$0.00";
  if (size < 0.0095) return sign + three(size).replace(/(\.\d*?)0+$/, "$1");
  if (size < 1) return sign + fixed(size, 3);
  return sign + fixed(size, size >= 1000 ? 0 : 2);
}

/// Decimal bytes: 1.23 GB.
export function bytes(x) {
  return si(x, "B");
}

export function mbit(x) {
  return known(x) ? si(x * 1e6, "bit/s") : UNKNOWN;
}

export function percent(share) {
  if (!known(share)) return UNKNOWN;
  const value = 100 * share;
  return `${fixed(value, Math.abs(value) < 9.95 ? 1 : 0)} %`;
}

/// +2.3 %, -0.4 %, for differences.
export function signed(share) {
  return known(share) && share > 0 ? `+${percent(share)}` : percent(share);
}

const two = (x) => String(x).padStart(2, "0");

/// 0.42 s, 12 s, 3 min 04 s, 2 h 05 min, 3 d 4 h.
export function duration(s) {
  if (!known(s)) return UNKNOWN;
  if (s < 0) return `-${duration(-s)}`;
  if (s < 9.95) return `${s < 0.0995 ? digits(s, 2) : fixed(s, 1)} s`;
  const whole = Math.round(s);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  const minutes = Math.round(s / 60);
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
  const hours = Math.round(s / 3600);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/// Whole seconds for what counts up or down: 4 s, 1 min 04 s.
export function countdown(s) {
  return known(s) && Math.abs(s) < 9.95 ? `${Math.round(s)} s` : duration(s);
}

/// m:ss or h:mm, for an axis.
export function elapsed(s, step) {
  const sign = s < 0 ? "-" : "";
  const t = Math.abs(s);
  if (step >= 3600 * 24) return `${sign}${digits(t / 86400)} d`;
  if (step >= 3600) return `${sign}${digits(t / 3600)} h`;
  if (t >= 3600) return `${sign}${Math.floor(t / 3600)}:${two(Math.floor((t % 3600) / 60))} h`;
  if (step < 1) return `${sign}${digits(t)} s`;
  return `${sign}${Math.floor(t / 60)}:${two(Math.round(t % 60))}`;
}

const pad = (date) => [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");

/// 14:05:09, in the zone of the reader.
export function clock(s) {
  return known(s) && s > 0 ? pad(new Date(1000 * s)) : UNKNOWN;
}

/// 2026-11-23 14:05:09, in the zone of the reader.
export function dateTime(s) {
  if (!known(s) || s <= 0) return UNKNOWN;
  const date = new Date(1000 * s);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${pad(date)}`;
}

const IDS_OF_MACHINE = 1000;
const MOST_MACHINES = 1e6;

/// Number of the machine in its launch; 0: no launch started this peer.
export function machineOf(id) {
  const machine = Math.floor(id / IDS_OF_MACHINE);
  return machine <= MOST_MACHINES ? machine : 0;
}

/// The name of a peer, as the program has it: "p3" for machine 3 of a launch, "p3-r2" for its second start again;
/// else its id.
function nameOf(id) {
  const machine = machineOf(id);
  if (machine === 0) return String(id);
  const start = id % IDS_OF_MACHINE;
  return `p${machine}${start ? `-r${start}` : ""}`;
}

/// Bare ids have up to 16 digits: the last four tell peers of one run apart, the whole id stands in titles.
export function shortId(id) {
  const text = nameOf(id);
  return machineOf(id) !== 0 || text.length <= 6 ? text : `…${text.slice(-4)}`;
}

export function peerName(id) {
  return `peer ${shortId(id)}`;
}

/// "peer 3", "peers 2, 5", "peers 2, 5 and 9 more".
export function peerNames(ids, most = 4) {
  if (!ids.length) return "";
  const shown = ids.slice(0, most).map(shortId).join(", ");
  const more = ids.length > most ? ` and ${ids.length - most} more` : "";
  return `${ids.length > 1 ? "peers" : "peer"} ${shown}${more}`;
}

export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}
