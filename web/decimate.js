// SPDX-License-Identifier: Apache-2.0
// Fewer points for a curve, without losing a peak: of each part the first, the least, the greatest and the last.

/// The indices to keep of `values` (null where there is none), at most about `most`.
export function keptIndices(values, most) {
  const n = values.length;
  if (n <= most) return Array.from({ length: n }, (_, i) => i);
  const parts = Math.max(1, Math.floor(most / 4));
  const kept = new Set();
  for (let part = 0; part < parts; ++part) {
    const from = Math.floor((part * n) / parts);
    const to = Math.floor(((part + 1) * n) / parts);
    let least = -1;
    let greatest = -1;
    for (let i = from; i < to; ++i) {
      if (values[i] == null) continue;
      if (least < 0 || values[i] < values[least]) least = i;
      if (greatest < 0 || values[i] > values[greatest]) greatest = i;
    }
    for (const i of [from, least, greatest, to - 1]) if (i >= 0) kept.add(i);
  }
  return [...kept].sort((a, b) => a - b);
}

/// {xs, ys} with at most about `most` points.
export function decimate(xs, ys, most) {
  const kept = keptIndices(ys, most);
  return { xs: kept.map((i) => xs[i]), ys: kept.map((i) => ys[i]) };
}
