// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "monitor/fold/journal.h"
#include "sim/checkers/checker.h"

namespace tw::sim {

/// I10: the cost on the board equals, within 0.1 %, price x uptime of each process (by the times of its
/// events) plus tariff x bytes given to its port, as the network counts them.
class CostAddsUp final : public Checker {
 public:
  explicit CostAddsUp(const Rules& rules);

  void on_traffic(PeerId peer, const std::map<std::string, std::uint64_t>& given) override;
  void on_event(PeerId peer, const world::Event& event) override;
  void on_end(std::span<const Survivor> survivors) override;

 private:
  struct Meter {
    std::string site;
    Instant begun{}, last{};
    std::map<std::string, std::uint64_t> given;  ///< by this process, by site
  };

  void add_process(const Meter& meter);

  Rules rules_;
  monitor::Journal journal_;
  std::map<PeerId, Meter> meters_;
  double machines_usd_ = 0, egress_usd_ = 0;  ///< of processes that have ended
};

/// I11: a board fed only by the statuses of peers shows for each peer, when its status arrives, the same as a
/// board with all logs. A peer sends its status at every 64th event of the run, and at the end.
class BoardsAgree final : public Checker {
 public:
  explicit BoardsAgree(const Rules& rules);

  void on_event(PeerId peer, const world::Event& event) override;
  void on_end(std::span<const Survivor> survivors) override;

 private:
  void tell(PeerId peer, double now_s);
  void compare(PeerId told, const monitor::Board& live, const monitor::Board& logs);

  static constexpr std::uint64_t kEventsPerStatus = 64;

  Rules rules_;
  monitor::Journal logs_, live_;
  std::map<PeerId, monitor::Journal> own_;
  std::uint64_t events_ = 0;
  bool rewound_ = false;  ///< rounds were repeated: a peer may not know which of its own count
};

}  // namespace tw::sim
