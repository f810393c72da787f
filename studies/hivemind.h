// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace tw::studies {

/// What averaging costs Hivemind beside the wire. The values are fitted to the clean rows of families A to D
/// and Lambda of the published measurements; docs/benchmarks.md has their cross-validated errors.
struct HivemindCosts {
  /// Time of one peer's processor for each part packed or unpacked; one at a time (one interpreter).
  double handling_s_per_mb = 0.0019;
  /// Before the bytes move, for each tensor and each further peer.
  double rendezvous_s_per_tensor = 0.0027;
  /// The parameter update after the averaging.
  double update_s = 1.5;
  double update_s_per_m_params = 0.0077;
  /// Rate of a stream between sites over that of iperf. Above 1, for what is fetched in advance hides a part
  /// of the transfer.
  double stream_gain = 1.84;
  /// The same, beside stream_gain, where one end is a machine on premises.
  double on_premises_gain = 0.6;
  /// A host with a faster processor (all but the T4 machines) needs this share of all but the wire.
  double fast_host = 0.65;
};

struct HivemindPeer {
  double samples_per_s = 1;
  std::uint64_t microbatch = 32;
  double nic_bytes_per_s = 860e6;  ///< each way
  double host = 1;                 ///< its share of HivemindCosts' times
};

/// One TCP stream.
struct HivemindStream {
  double bytes_per_s = 860e6;
  double rtt_s = 1e-3;  ///< part of the rate already; kept for other protocols on the same path
  /// Between sites: its rate differs from block to block. The time of a block is drawn from the exponential
  /// distribution around its mean.
  bool wanders = false;
};

struct HivemindRun {
  std::vector<HivemindPeer> peers;
  std::vector<std::vector<HivemindStream>> streams;  ///< [from][to]
  double params_m = 1;
  int tensors = 1;
  std::uint64_t target_batch_size = 32768;
  /// A group is not complete before that (5 s in the published runs of images and text, 20 s of speech).
  double matchmaking_floor_s = 5;
  int rounds = 5;
  std::uint64_t seed = 1;
};

/// Means over the rounds; communication over peers, too. It is all that a peer does not calculate.
struct HivemindFigures {
  double samples_per_s = 0;
  double round_s = 0;
  double calculation_s = 0;
  double communication_s = 0;
  double sent_mb_per_peer = 0;

  double granularity() const { return calculation_s / communication_s; }
};

/// Synchronous data-parallel training as Hivemind does it. The peers accumulate until they have the target
/// batch together, each ends the microbatch it is in, and a butterfly all-reduce of fp16 follows: each peer
/// owns 1/N of the vector and has one TCP stream to every other. The streams to an owner advance block by
/// block in step, for it answers a block with the mean when all have sent it, and takes the next one of a
/// sender only then.
HivemindFigures simulate_hivemind(const HivemindRun& run, const HivemindCosts& costs);

}  // namespace tw::studies
