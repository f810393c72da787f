// SPDX-License-Identifier: Apache-2.0
// Ticks at 1, 2 or 5 times a power of ten.

/// The step of a scale of `span` with about `most` ticks.
export function roundStep(span, most) {
  if (!(span > 0)) return 1;
  const least = span / Math.max(1, most);
  const power = Math.pow(10, Math.floor(Math.log10(least)));
  for (const factor of [1, 2, 5]) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

/// From the tick at or below `low` to the one at or above `high`.
export function scaleOf(low, high, most = 6) {
  const span = high > low ? high - low : Math.abs(high) || 1;
  const step = roundStep(span, most);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  const values = [];
  for (let i = first; i <= last; ++i) values.push(Number((i * step).toPrecision(12)));
  return { low: first * step, high: last * step, step, values };
}
