// SPDX-License-Identifier: Apache-2.0
#include "peer/live_journal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/peer_name.h"

namespace tw::peer {
namespace {

/// Each member reports to every other one.
constexpr std::uint64_t kFewMembers = 8;
constexpr Duration kBetweenUrgent = std::chrono::milliseconds(250);

}  // namespace

LiveJournal::LiveJournal(PeerId self, world::Clock& clock, const train::BudgetOptions& budget,
                         train::SessionObserver* decisions)
    : self_(self),
      clock_(clock),
      decisions_(decisions),
      journal_({.budget_usd = budget.usd}),
      budget_(budget.usd, budget.drains()) {}

void LiveJournal::take(const world::Event& event) {
  journal_.take({.writer = self_, .unix_nanos = clock_.unix_nanos(), .event = event});
}

double LiveJournal::now_s() const { return static_cast<double>(clock_.unix_nanos()) * 1e-9; }

wire::Status LiveJournal::status() {
  told_at_ = clock_.now();
  wire::Status status = journal_.status(self_, now_s());
  status.barrier = barrier_.word();
  return status;
}

bool LiveJournal::is_urgent(const world::Event& event) const {
  if (event.as<event::Apply>()) return journal_.rounds().complete();
  const auto* commit = event.as<event::Commit>();
  if (commit == nullptr) return false;
  const bool is_cheap = commit->members <= kFewMembers && clock_.now() - told_at_ >= kBetweenUrgent;
  return is_cheap || commit->last;
}

std::string LiveJournal::difference_at_the_end() const {
  const auto& peers = journal_.peers().all();
  const auto own = peers.find(self_);
  if (own == peers.end() || own->second.digest().empty() || !journal_.rounds().complete()) return {};
  const Round last = journal_.rounds().last();
  std::vector<std::string> differing;
  for (const auto& [peer, track] : peers) {
    const bool stood_there = track.digest_round() == last && own->second.digest_round() == last;
    if (stood_there && !track.digest().empty() && track.digest() != own->second.digest())
      differing.push_back(peer_name(peer));
  }
  if (differing.empty()) return {};
  return fmt::format(
      "the parameters of this peer differ after the last round from those of peer {}: a program changed "
      "parameters or the optimizer's state between rounds, or its optimizer computes other bits, here or "
      "there; "
      "tw report compares all peers",
      fmt::join(differing, ", "));
}

std::optional<monitor::BudgetWord> LiveJournal::budget_word() {
  if (!budget_.is_set()) return std::nullopt;
  return budget_.watch(journal_.board(now_s()).money);
}

void LiveJournal::on_commit(const wire::Record& record) {
  if (decisions_ != nullptr) decisions_->on_commit(record);
}

void LiveJournal::on_applied(const wire::Record& record, const Digest& parameters, bool restored) {
  if (decisions_ != nullptr) decisions_->on_applied(record, parameters, restored);
}

void LiveJournal::on_status(PeerId from, const wire::Status& status) {
  if (from != self_) {
    journal_.take(from, status, now_s());
    barrier_.take(from, status.barrier);
  }
  if (decisions_ != nullptr) decisions_->on_status(from, status);
}

}  // namespace tw::peer
