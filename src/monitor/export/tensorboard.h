// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "monitor/board/board.h"

namespace tw::monitor {

/// CRC-32C (Castagnoli, RFC 3720 appendix B.4), masked as in TFRecord (tensorflow/core/lib/hash/crc32c.h).
std::uint32_t masked_crc32c(std::string_view bytes);

/// A record of the TFRecord format: length, its checksum, the bytes, their checksum.
std::string tfrecord(std::string_view bytes);

/// The content of a TensorBoard event file of a run: each committed round once, with its number as step and
/// its end as wall time. The tags: loss/batch, speed/samples_per_s, speed/granularity, speed/calc_s,
/// speed/comm_s, run/contributors, money/usd, money/usd_per_million_samples; evaluation/NAME of each
/// evaluated round. Money is that of the first board that has the round settled. Pure; one file, one thread.
class TensorBoardEvents {
 public:
  /// The first record of each file.
  static std::string begin(double at_s);

  /// Records that are new with this board; empty if nothing is new. Rounds of the last
  /// seconds wait for the next board, because not every peer has reported them.
  std::string take_settled(const Board& board);

  /// The same with the rounds before `end`: every peer has reported them.
  std::string take_before(const Board& board, Round end);

  /// The same with the newest ones: no board follows.
  std::string take_all(const Board& board);

  static constexpr double kSettledAfterS = 3;

 private:
  /// Whether to take a round that ended then.
  using Settled = std::function<bool(Round round, double at_s)>;

  std::string take_when(const Board& board, const Settled& settled);
  std::string take_rounds(const Board& board, const Settled& settled);
  std::string take_evaluations(const Board& board);

  Round round_ = 0;                                    ///< the newest one written
  double committed_s_ = 0;                             ///< end of round_; 0: none yet
  std::set<std::pair<Round, std::string>> evaluated_;  ///< those written
};

/// "events.out.tfevents.1767225600.tradewind": the same name for a run whenever it is written.
std::string tensorboard_file_name(double begun_s);

}  // namespace tw::monitor
