// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/fitness.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "average/reduction/weighted_sum.h"

namespace tw::average {

double Fitness::squares_of(std::span<const std::byte> piece) const {
  return norm_cap_ == 0 ? 0 : std::pow(norm(codec_, piece), 2);
}

std::optional<Unfit> Fitness::judge(PeerId from, bool addable, double squares, std::uint64_t samples) const {
  if (!addable) return Unfit{from};
  const bool is_sum = carries_sums(codec_);
  if (norm_cap_ == 0 || (is_sum && samples == 0)) return std::nullopt;
  const double length = std::sqrt(squares) / static_cast<double>(is_sum ? samples : 1);
  if (length <= norm_cap_) return std::nullopt;
  return Unfit{from, wire::StallCause::too_large, length};
}

void Fitness::report(const Unfit& unfit) {
  if (unfit_.emplace(unfit.peer, unfit).second) news_.push_back(unfit);
}

void Fitness::report_again(const wire::Record& draft) {
  for (const auto& [peer, unfit] : unfit_) {
    if (std::ranges::find(draft.contributors, peer, &wire::Contribution::peer) == draft.contributors.end())
      continue;
    if (std::ranges::find(news_, peer, &Unfit::peer) == news_.end()) news_.push_back(unfit);
  }
}

std::vector<Unfit> Fitness::take_news() { return std::exchange(news_, {}); }

}  // namespace tw::average
