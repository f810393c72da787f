// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

/// When machines of a spot market came and went, from records of it (docs/simulation.md).
namespace tw::sim {

/// One machine from its start to its end.
struct MachineLifetime {
  int slot = 0;
  Duration comes{};
  Duration goes{};
  bool taken = true;      ///< false: it was still there at the end
  bool given_up = false;  ///< it goes by its owner's choice, not by the market's
  bool on_demand = false;
  std::optional<double> usd_per_h{};  ///< nothing: WhatIf::usd_per_h

  bool operator==(const MachineLifetime&) const = default;
};

/// A fleet of at most `machines` machines at once. In each slot one machine follows the other.
struct Trace {
  std::string id;
  int machines = 0;
  Duration length{};
  std::vector<MachineLifetime> lifetimes;  ///< by slot, then by time
};

/// Reads CSV of one of two kinds, by the header; columns may come in any order, and without trace_id the
/// file is one trace:   trace_id,t_seconds,available      a row holds until the next one of its trace; the
/// last marks the end   trace_id,t_seconds,event,node     event: add or remove; the last marks the end `id`:
/// one trace, or all whose ids begin with what stands before a final '*'; empty when the file has one alone.
/// If rows have only the number of machines, the lost ones and the slots of new ones are drawn (from the id:
/// the same file gives the same lifetimes). An error names file, line, value and what was expected.
Result<std::vector<Trace>> read_traces(const std::string& file, std::string_view text, const std::string& id);

/// A part of a trace, for so many peers.
struct TraceWindow {
  int peers = 16;
  Duration from{};
  Duration length{};  ///< of the result
  double speed = 1;   ///< speed-up of the trace
};

/// A trace of fewer machines is no fleet: its slots are too few to stand for other machines.
inline constexpr int kSmallestFleet = 8;

/// The lifetimes of slots 0 .. peers-1, from 0 to the window's length, by time. One fleet of M machines: slot
/// s plays machine s * M / peers, so the share of present peers is that of the fleet, and peers of one
/// machine leave together. Else the machines of all traces are assigned to the slots in turn; then again with
/// their time shifted (cyclically, by equal parts of the trace), so that slots of the same machine differ.
std::vector<MachineLifetime> lifetimes_in(const std::vector<Trace>& traces, const TraceWindow& window);

}  // namespace tw::sim
