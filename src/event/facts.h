// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "event/cause.h"

/// What the facts of events are made of (event/round_facts.h, event/process_facts.h): a struct for each kind
/// of event. fields() gives each fact its name in the log, the unit last, and its meaning for docs/events.md,
/// in the order of the log. A fact without a value, an empty text or list, and a flag that is false are left
/// out; a count without std::optional is always told.
namespace tw::event {

using Count = std::optional<std::uint64_t>;
using Measure = std::optional<double>;

/// Facts whose names begin with the name of the field, which ends with a colon: the rest is a site, a store
/// (world::StoreUses) or the id of a peer.
using CountsOf = std::vector<std::pair<std::string, std::uint64_t>>;
using MeasuresOf = std::vector<std::pair<PeerId, double>>;
using TextsOf = std::vector<std::pair<PeerId, std::string>>;

/// No value where it is not a number, or infinite.
inline Measure finite(const Measure& measure) {
  return measure && std::isfinite(*measure) ? measure : std::nullopt;
}

/// What a process used until now.
struct Use {
  Measure cpu_s, kernel_s;
  Count peak_memory;
  Measure gpu_busy;
  Count gpu_memory, gpu_memory_total;
  Measure queued_s, disk_s;
  Count bytes_sent, bytes_received;

  static void fields(auto& self, auto&& field) {
    field("cpu_s", self.cpu_s, "CPU time of the process until now");
    field("kernel_s", self.kernel_s, "the part of `cpu_s` in the kernel");
    field("peak_memory", self.peak_memory, "resident bytes, the most so far");
    field("gpu_busy", self.gpu_busy,
          "NVIDIA GPU of the program: busy share of the time since the last `call` or `commit`");
    field("gpu_memory", self.gpu_memory, "bytes in use on the GPU, by all processes");
    field("gpu_memory_total", self.gpu_memory_total, "bytes of the GPU");
    field("queued_s", self.queued_s,
          "until now, of the most hindered thread: ready to run without a processor; read every 200 ms at "
          "most");
    field("disk_s", self.disk_s, "until now, to write the event log");
    field("bytes_sent", self.bytes_sent, "of the process until now");
    field("bytes_received", self.bytes_received, "of the process until now");
  }
};

/// The bandwidth of a peer, where it is known.
struct Bandwidth {
  Measure up_mbit_s, down_mbit_s;

  static void fields(auto& self, auto&& field) {
    field("up_mbit_s", self.up_mbit_s, "bandwidth of this peer, outwards, where it is known");
    field("down_mbit_s", self.down_mbit_s, "the same, inwards");
  }
};

}  // namespace tw::event
