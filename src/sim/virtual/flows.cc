// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/flows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace tw::sim {
namespace {

// Times are whole nanoseconds, rates are not: what so little time carries counts as arrived.
constexpr double kSlack_s = 2e-9;
constexpr double kTie = 1 + 1e-9;

}  // namespace

int Flows::add_link(double bytes_per_s) {
  TW_CHECK(bytes_per_s > 0);
  links_.push_back({.bytes_per_s = bytes_per_s});
  return static_cast<int>(links_.size()) - 1;
}

void Flows::start(const Flow& flow, std::function<void()> done) {
  TW_CHECK(flow.cap_bytes_per_s > 0 && (std::isfinite(flow.cap_bytes_per_s) || !flow.links.empty()));
  advance();
  flows_.push_back({.flow = flow, .left = flow.bytes, .done = std::move(done)});
  settle_soon();
}

void Flows::settle_soon() {
  if (std::exchange(settling_, true)) return;
  scheduler_.at(scheduler_.now(), [this] { settle(); });
}

void Flows::settle() {
  settling_ = false;
  advance();
  ++generation_;
  if (flows_.empty()) return;
  share();
  double next_s = std::numeric_limits<double>::infinity();
  for (const Moving& moving : flows_) next_s = std::min(next_s, moving.left / moving.bytes_per_s);
  scheduler_.after(from_seconds(std::max(0.0, next_s)) + Duration(1), [this, generation = generation_] {
    if (generation == generation_) finish_done();
  });
}

/// Progressive filling: all rates rise together; a flow stops at its cap or when a link of its is full.
void Flows::share() {
  for (Link& link : links_) {
    link.free = link.bytes_per_s;
    link.contenders = 0;
  }
  for (Moving& moving : flows_) {
    moving.settled = false;
    for (const int link : moving.flow.links) ++links_[static_cast<std::size_t>(link)].contenders;
  }
  std::size_t open = flows_.size();
  while (open > 0) {
    const double level = fair_share();
    const bool capped = std::any_of(flows_.begin(), flows_.end(), [&](const Moving& moving) {
      return !moving.settled && moving.flow.cap_bytes_per_s <= level;
    });
    for (Moving& moving : flows_) {
      if (moving.settled) continue;
      if (capped ? moving.flow.cap_bytes_per_s > level : !on_full_link(moving, level)) continue;
      fix(moving, capped ? moving.flow.cap_bytes_per_s : level);
      --open;
    }
  }
}

double Flows::fair_share() const {
  double least = std::numeric_limits<double>::infinity();
  for (const Link& link : links_) {
    if (link.contenders > 0) least = std::min(least, link.free / link.contenders);
  }
  return least;
}

bool Flows::on_full_link(const Moving& moving, double level) const {
  return std::any_of(moving.flow.links.begin(), moving.flow.links.end(), [&](int number) {
    const Link& link = links_[static_cast<std::size_t>(number)];
    return link.free <= link.contenders * level * kTie;
  });
}

void Flows::fix(Moving& moving, double bytes_per_s) {
  moving.settled = true;
  moving.bytes_per_s = bytes_per_s;
  for (const int number : moving.flow.links) {
    Link& link = links_[static_cast<std::size_t>(number)];
    link.free = std::max(0.0, link.free - bytes_per_s);
    --link.contenders;
  }
}

void Flows::advance() {
  const double passed_s = to_seconds(scheduler_.now() - then_);
  then_ = scheduler_.now();
  for (Moving& moving : flows_) moving.left -= moving.bytes_per_s * passed_s;
}

void Flows::finish_done() {
  advance();
  const auto arrived = std::stable_partition(flows_.begin(), flows_.end(), [](const Moving& moving) {
    return moving.left > moving.bytes_per_s * kSlack_s;
  });
  std::vector<std::function<void()>> calls;
  for (auto moving = arrived; moving != flows_.end(); ++moving) calls.push_back(std::move(moving->done));
  flows_.erase(arrived, flows_.end());
  settle_soon();
  for (const auto& call : calls) call();
}

}  // namespace tw::sim
