// SPDX-License-Identifier: Apache-2.0
#include "plan/search/all_lost.h"

#include <cmath>

namespace tw::plan {
namespace {

struct Kind {
  const Choice& choice;
  int peers;
};

std::vector<Kind> kinds_of(const Space& space, const std::vector<int>& counts) {
  std::vector<Kind> kinds;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) kinds.push_back({space.choices[i], counts[i]});
  return kinds;
}

/// A machine goes while all others are away.
double last_lost_per_h(const std::vector<Kind>& kinds) {
  double per_h = 0;
  for (const Kind& last : kinds) {
    double together = last.peers * last.choice.lost_per_h;
    for (const Kind& kind : kinds)
      together *= std::pow(kind.choice.away, kind.peers - (&kind == &last ? 1 : 0));
    per_h += together;
  }
  return per_h;
}

/// One shock takes several machines of one failure domain. The rate of a single one counts shocks already.
double all_struck_per_h(const Space& space, const std::vector<Kind>& kinds) {
  double chance = 1;
  int peers = 0;
  for (const Kind& kind : kinds) {
    if (kind.choice.domain != kinds.front().choice.domain) return 0;
    peers += kind.peers;
    chance *= std::pow(kind.choice.struck, kind.peers);
  }
  return peers > 1 ? space.shocks_per_h * chance : 0;
}

}  // namespace

double Checkpoints::wall_per_work() const {
  return interval_s > 0 ? expected_wall_per_work(cost, interval_s) : 1;
}

Checkpoints checkpoints_of(const Space& space, const std::vector<int>& counts) {
  Checkpoints all{.cost = {.checkpoint_s = space.checkpoint_s}};
  if (space.checkpoint_s <= 0) return all;
  const std::vector<Kind> kinds = kinds_of(space, counts);
  const double lost_per_h = last_lost_per_h(kinds) + all_struck_per_h(space, kinds);
  constexpr double kLeast_per_h = 1e-6;  // once a century
  if (lost_per_h < kLeast_per_h) return all;
  all.cost.mtbf_s = 3600 / lost_per_h;
  all.interval_s = best_interval_s(all.cost);
  return all;
}

}  // namespace tw::plan
