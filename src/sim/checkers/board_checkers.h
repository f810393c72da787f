// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "monitor/journal.h"
#include "sim/checkers/checker.h"

namespace tw::sim {

/// I10: what the board says that the run has cost is, within 0.1 %, price x uptime of each process, by the
/// times of its events, and tariff x what its port was given, counted where the network counts.
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
  double machines_usd_ = 0, egress_usd_ = 0;  ///< of processes that are over
};

/// I11: the board of a peer, from its own events and what the others told it at the end, shows of those that
/// live what a board shows that has the events of all.
class BoardsAgree final : public Checker {
 public:
  explicit BoardsAgree(const Rules& rules);

  void on_event(PeerId peer, const world::Event& event) override;
  void on_end(std::span<const Survivor> survivors) override;

 private:
  void compare(PeerId told, const monitor::Board& live, const monitor::Board& logs);

  Rules rules_;
  monitor::Journal all_;
  std::map<PeerId, monitor::Journal> own_;
};

}  // namespace tw::sim
