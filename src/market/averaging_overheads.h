// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What averaging takes beside the bound of its bandwidth (docs/benchmarks.md): the one law of predictions,
/// before a run and from what it measured.
namespace tw::market {

/// `tw bench reduce` reaches this share of the bound on emulated networks.
inline constexpr double kShareOfBound = 0.98;
/// A fixed part of each round, and processor time of all peers for each GB that each peer sends.
inline constexpr double kRoundS = 0.02;
inline constexpr double kProcessorSPerGb = 0.98;
/// AdamW reads and writes seven floats of a parameter; memory of a small VM moves 10 GB/s.
inline constexpr double kUpdateSPerMParams = 7 * 4e6 / 10e9;

}  // namespace tw::market
