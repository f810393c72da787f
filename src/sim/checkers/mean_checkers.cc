// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/mean_checkers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "average/reduction/mean_digest.h"
#include "average/reduction/reference.h"

namespace tw::sim {
namespace {

/// The smallest value that send_huge sends (sim/faults/tamper.cc): a lower cap refuses all of them.
constexpr double kHuge = 1e4;

/// By how much rounding on the wire can lengthen a mean, of a site or of all. In a block of 256 values it
/// is half a step each, 1/254 of the largest of them.
double rounding(codec::Codec codec) {
  switch (codec_of_mean(codec)) {
    case codec::Codec::int8:
      return 0.07;
    case codec::Codec::bf16:
      return 4e-3;
    default:
      return 1e-3;
  }
}

std::optional<FaultKind> unknowable(FaultKind kind, const Rules& rules) {
  const bool refused = rules.norm_cap > 0 && rules.norm_cap <= kHuge;
  // A segment that is named as one of the next round is kept until then.
  const bool lies = kind == FaultKind::send_negated || kind == FaultKind::wrong_round ||
                    kind == FaultKind::memory_flip || (kind == FaultKind::send_huge && !refused);
  return lies ? std::optional(kind) : std::nullopt;
}

bool refusable(FaultKind kind, const Rules& rules) {
  switch (kind) {
    case FaultKind::send_nan:
    case FaultKind::send_infinite:
    case FaultKind::claim_more:
    case FaultKind::replay:
    case FaultKind::duplicate:
    case FaultKind::wrong_length:
    case FaultKind::malformed:
    case FaultKind::truncated:
    case FaultKind::flood:
      return true;
    case FaultKind::send_huge:
      return !unknowable(kind, rules);
    default:
      return false;
  }
}

bool has_weights(const wire::Record& record) {
  return std::all_of(record.contributors.begin(), record.contributors.end(),
                     [](const wire::Contribution& c) { return c.samples > 0; });
}

using Sums = std::vector<std::vector<float>>;

/// The means that follow when each segment of some contributions comes with either sign.
class SignChoices {
 public:
  /// Which contributions, by their place in the record: at most 16.
  SignChoices(const wire::Record& record, const Rules& rules, const Sums& sums,
              const std::vector<std::size_t>& doubtful)
      : geometry_(rules.geometry(record.round)), signs_(std::size_t{1} << doubtful.size()) {
    for (std::size_t signs = 0; signs < signs_; ++signs) {
      std::set<std::size_t> negated;
      for (std::size_t i = 0; i < doubtful.size(); ++i) {
        if ((signs >> i & 1U) != 0) negated.insert(doubtful[i]);
      }
      means_.push_back(mean_of(record, sums, rules, negated));
    }
  }

  bool is_one(const Digest& mean, std::uint64_t most) const {
    const std::uint64_t segments = geometry_.segments();
    std::vector<std::size_t> choice(segments, 0);
    std::vector<float> values = means_.front();
    for (std::uint64_t tried = 0; tried < most; ++tried) {
      if (digest_of_mean(values, geometry_) == mean) return true;
      std::uint64_t segment = 0;
      while (segment < segments && ++choice[segment] == signs_) choice[segment++] = 0;
      if (segment == segments) return false;
      for (std::uint64_t s = 0; s <= segment; ++s) take(s, choice[s], values);
    }
    return true;  // not judged
  }

 private:
  void take(std::uint64_t segment, std::size_t signs, std::vector<float>& values) const {
    const auto first = static_cast<std::ptrdiff_t>(geometry_.first(segment));
    const auto size = static_cast<std::ptrdiff_t>(geometry_.size(segment));
    std::copy_n(means_[signs].begin() + first, size, values.begin() + first);
  }

  const average::Geometry& geometry_;
  std::size_t signs_;
  std::vector<std::vector<float>> means_;  ///< by the signs of all segments alike
};

}  // namespace

void Liars::on_strike(const Strike& strike) {
  if (!unknowable(strike.kind, rules_)) return;
  for (const PeerId peer : strike.victims) {
    FaultKind& kind = kinds_.try_emplace(peer, strike.kind).first->second;
    if (strike.kind != FaultKind::send_negated) kind = strike.kind;
  }
}

void Liars::on_calm(Round newest) { last_ = newest + 1; }

std::optional<FaultKind> Liars::of(PeerId peer, Round round) const {
  const auto kind = kinds_.find(peer);
  if (kind == kinds_.end()) return std::nullopt;
  const bool named_too_early = kind->second == FaultKind::wrong_round && round == last_ + 1;
  return round > last_ && !named_too_early ? std::nullopt : std::optional(kind->second);
}

void ExactMean::on_calm(Instant) {
  const wire::Record* newest = ledger_.newest();
  liars_.on_calm(newest == nullptr ? 0 : newest->round);
}

void ExactMean::on_commit(const Sighting& s) {
  if (s.record.round > 0 && seen_.insert(s.digest).second) {
    judge_parent(s.record);
    judge(s.digest, s.record);
  }
  residuals_.on_commit(s);
}

void ExactMean::judge(const Digest& digest, const wire::Record& record) {
  if (!has_weights(record)) {
    violated(fmt::format("round {}: a contribution has no weight", record.round));
    return;
  }
  if (!rules_.overlaps() || record.last ||
      std::ranges::none_of(record.contributors, &wire::Contribution::is_late)) {
    if (!is_explained(record)) unlike(record);
    return;
  }
  if (!std::ranges::all_of(record.contributors, &wire::Contribution::is_late))
    violated(fmt::format("round {}: some contributions are one update older than others", record.round));
  late_.emplace(digest, record);
}

// With overlap, a round whose sums were all lost after its call is leased again, to peers that have moved on.
// Then all contributions are of the parameters that the next record names.
void ExactMean::judge_parent(const wire::Record& record) {
  const auto parent = late_.find(record.parent);
  if (parent == late_.end()) return;
  wire::Record moved_on = parent->second;
  moved_on.parameters = record.parameters;
  if (!is_explained(moved_on)) unlike(moved_on);
  residuals_.lose(parent->second);
  late_.erase(parent);
}

void ExactMean::unlike(const wire::Record& record) {
  const Digest mean = digest_of_mean(residuals_.honest_mean(record), rules_.geometry(record.round));
  violated(fmt::format(
      "round {}: the recorded mean is {}, that of its {} contributions {}{}", record.round,
      to_string(record.mean), record.contributors.size(), to_string(mean),
      negated_in(record)->empty() ? "" : ", and none with other signs of who sends them negated"));
}

// Nothing: somebody lied in another way, and any mean may be right.
std::optional<std::vector<std::size_t>> ExactMean::negated_in(const wire::Record& record) const {
  std::vector<std::size_t> negated;
  for (std::size_t i = 0; i < record.contributors.size(); ++i) {
    const auto lie = liars_.of(record.contributors[i].peer, record.round);
    if (lie && lie != FaultKind::send_negated) return std::nullopt;
    if (lie) negated.push_back(i);
  }
  return negated;
}

bool ExactMean::is_explained(const wire::Record& record) {
  const auto negated = negated_in(record);
  if (!negated) return true;
  const std::vector<Sums> choices = residuals_.honest_sums(record);
  const Digest mean = digest_of_mean(residuals_.honest_mean(record), rules_.geometry(record.round));
  if (mean == record.mean || !residuals_.knows(record)) return true;
  constexpr std::size_t kMostDoubtful = 8;
  if (negated->size() > kMostDoubtful) return true;
  const auto with_signs = [&](const Sums& sums) {
    return SignChoices(record, rules_, sums, *negated).is_one(record.mean, kMostChoices);
  };
  return !negated->empty() && std::any_of(choices.begin(), choices.end(), with_signs);
}

void OnlySoundInput::on_strike(const Strike& strike) {
  residuals_.on_strike(strike);
  for (const PeerId peer : strike.victims) {
    if (refusable(strike.kind, rules_)) refusable_[peer].insert(strike.kind);
    if (unknowable(strike.kind, rules_)) liars_.insert(peer);
  }
}

void OnlySoundInput::on_commit(const Sighting& s) {
  if (s.record.round > 0 && seen_.insert(s.digest).second) {
    judge_contributors(s.record);
    judge_mean(s.record);
  }
  residuals_.on_commit(s);
}

void OnlySoundInput::on_applied(const Sighting& s) {
  heads_[s.peer].insert(s.digest);
  residuals_.on_applied(s);
}

void OnlySoundInput::judge_contributors(const wire::Record& record) {
  const wire::Record* before = ledger_.find(record.parent);
  std::set<std::pair<PeerId, std::uint32_t>> slots;
  for (const wire::Contribution& c : record.contributors) {
    if (!slots.emplace(c.peer, c.slot).second) {
      violated(fmt::format("round {}: contribution {}/{} counts twice", record.round, c.peer.value, c.slot));
    }
    if (before == nullptr || has_member(*before, c.peer) || has_member(record, c.peer)) continue;
    if (heads_[c.peer].contains(record.parent)) continue;  // came early, and leaves already
    violated(fmt::format("round {}: peer {} contributed, but nobody knows it", record.round, c.peer.value));
  }
}

void OnlySoundInput::judge_mean(const wire::Record& record) {
  const auto contributes = [&](PeerId peer) {
    return std::any_of(record.contributors.begin(), record.contributors.end(),
                       [&](const wire::Contribution& c) { return c.peer == peer; });
  };
  if (!has_weights(record) || std::any_of(liars_.begin(), liars_.end(), contributes))
    return;  // I4 reports it
  if (!residuals_.knows(record)) return;
  std::string struck;
  for (const auto& [peer, kinds] : refusable_) {
    if (!contributes(peer)) continue;
    for (const FaultKind kind : kinds) struck += fmt::format(" {} ({})", peer.value, name_of(kind));
  }
  if (struck.empty() && rules_.norm_cap == 0 && !rules_.error_feedback) return;
  const std::vector<float> mean = residuals_.honest_mean(record);
  if (digest_of_mean(mean, rules_.geometry(record.round)) != record.mean) {
    if (!struck.empty()) {
      violated(fmt::format("round {}: something is in the mean that had to be refused, of peers{}",
                           record.round, struck));
    }
    return;
  }
  const double longer = 1 + rounding(rules_.codec);
  double squares = 0;
  for (const float value : mean) squares += static_cast<double>(value) * static_cast<double>(value);
  if (rules_.norm_cap == 0 || std::sqrt(squares) <= rules_.norm_cap * longer * longer) return;
  violated(fmt::format("round {}: the mean has norm {}, beyond the cap {}", record.round, std::sqrt(squares),
                       rules_.norm_cap));
}

}  // namespace tw::sim
