// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "monitor/board/board.h"

/// A board for Prometheus.
namespace tw::monitor {

struct Metric {
  /// One value; labels: "" or `peer="1",site="a"`.
  using Emit = std::function<void(const std::string& labels, double value)>;

  std::string_view name;    ///< "tw_round": tw_, the base unit at the end, _total for counters
  std::string_view type;    ///< gauge or counter
  std::string_view labels;  ///< their names: "peer, site"; empty: none
  std::string_view help;    ///< one sentence without its dot
  void (*values)(const Board& board, const Emit& emit);
};

/// In the order of the text.
std::span<const Metric> metrics();

/// Prometheus' text format 0.0.4. A metric whose value is not known is left out. Peers that left or were lost
/// more than ten minutes ago, or before the end of the run, are left out, so that labels stay within the
/// members of the run.
std::string metrics_text(const Board& board);

inline constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace tw::monitor
