// SPDX-License-Identifier: Apache-2.0
#include "peer/barrier.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"

namespace tw::peer {
namespace {

constexpr Duration kFirstNews = std::chrono::seconds(4);

}  // namespace

wire::BarrierWord Barrier::told_by(PeerId peer) const {
  const auto found = told_.find(peer);
  return found == told_.end() ? wire::BarrierWord{} : found->second;
}

void Barrier::arrive(Instant now, const std::vector<PeerId>& others) {
  TW_CHECK(!own_.stands);
  std::uint64_t number = own_.number + 1;
  for (const PeerId other : others) {
    const wire::BarrierWord word = told_by(other);
    number = std::max(number, word.stands ? word.number : word.number + 1);
  }
  own_ = {.number = number, .stands = true};
  since_ = now;
  told_after_ = kFirstNews;
}

std::vector<PeerId> Barrier::awaited(const std::vector<PeerId>& others) const {
  std::vector<PeerId> missing;
  for (const PeerId other : others)
    if (own_.stands && told_by(other).number < own_.number) missing.push_back(other);
  return missing;
}

void Barrier::pass() {
  TW_CHECK(own_.stands);
  own_.stands = false;
  ++passed_;
}

std::optional<Duration> Barrier::news_of_wait(Instant now) {
  const Duration waited = now - since_;
  if (!own_.stands || waited < told_after_) return std::nullopt;
  told_after_ = waited * 3 / 2;
  return waited;
}

std::string text_of_barrier(const std::vector<PeerId>& awaited) {
  std::vector<std::uint64_t> ids;
  for (const PeerId peer : awaited) ids.push_back(peer.value);
  return fmt::format("waiting for peer{} {}: the barrier that all reach", ids.size() == 1 ? "" : "s",
                     fmt::join(ids, ", "));
}

}  // namespace tw::peer
