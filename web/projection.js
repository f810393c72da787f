// SPDX-License-Identifier: Apache-2.0
// The Equal Earth projection (Savric, Patterson, Jenny 2018): areas are true, shapes are pleasant.

const A = [1.340264, -0.081106, 0.000893, 0.003796];
const M = Math.sqrt(3) / 2;

/// x in -1 to 1 (degrees of longitude), y likewise upwards, both by half the width of the world.
export function equalEarth(latitude, longitude) {
  const t = Math.asin(M * Math.sin((latitude * Math.PI) / 180));
  const t2 = t * t;
  const t6 = t2 * t2 * t2;
  const x =
    (((longitude * Math.PI) / 180) * Math.cos(t)) /
    (M * (A[0] + 3 * A[1] * t2 + t6 * (7 * A[2] + 9 * A[3] * t2)));
  const y = t * (A[0] + A[1] * t2 + t6 * (A[2] + A[3] * t2));
  const half = Math.PI / (M * A[0]);
  return [x / half, y / half];
}

/// To pixels of a picture so wide; Antarctica is left out.
export function toPicture(width) {
  const [, top] = equalEarth(84, 0);
  const [, bottom] = equalEarth(-57, 0);
  const half = width / 2;
  return {
    height: Math.round((top - bottom) * half),
    at: (latitude, longitude) => {
      const [x, y] = equalEarth(latitude, longitude);
      return [half + x * half, (top - y) * half];
    },
  };
}
