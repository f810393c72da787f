// SPDX-License-Identifier: Apache-2.0
#include "swarm/shares/bound.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/median.h"
#include "base/simplex.h"

namespace tw::swarm {
namespace {

/// Most numbers in the tableau: beyond it, rates of pairs are ignored.
constexpr std::size_t kMostNumbers = 300'000;
/// If others have room, no peer gets a part that would need more than this fraction of its measured rate:
/// rates are accurate to a few percent, and a peer with too much holds up all.
constexpr double kSurely = 0.85;
constexpr int kHalvings = 60;
constexpr double kNought = 1e-9;

/// Times are for a vector of one byte.
class Lines {
 public:
  explicit Lines(const std::vector<Participant>& participants)
      : participants_(participants), n_(static_cast<double>(participants.size())) {
    std::map<PeerId, std::size_t> places;
    for (std::size_t i = 0; i < participants.size(); ++i) places[participants[i].peer] = i;
    for (const Participant& participant : participants) all_ += participant.contributions;
    for (std::size_t i = 0; i < participants.size(); ++i) {
      for (const wire::PairRate& slow : participants[i].bandwidth.slow) {
        const auto to = places.find(slow.to);
        if (to != places.end() && to->second != i && slow.bytes_per_s > 0)
          pairs_.push_back({i, to->second, slow.bytes_per_s});
      }
    }
  }

  double seconds(const std::vector<double>& parts) const {
    double most = 0;
    for (std::size_t i = 0; i < participants_.size(); ++i) {
      most = std::max(most, (sent(i) + more_sent(i) * parts[i]) / up(i));
      most = std::max(most, (1 + more_received(i) * parts[i]) / down(i));
    }
    for (const Pair& p : pairs_)
      most = std::max(most, (sent(p.from) * parts[p.to] + parts[p.from]) / p.bytes_per_s);
    return most;
  }

  /// The largest parts that fit into time t, ignoring pairs.
  std::vector<double> room(double t) const {
    std::vector<double> parts(participants_.size());
    for (std::size_t i = 0; i < participants_.size(); ++i) {
      if (!participants_[i].owns) continue;
      const double out = room(t * up(i) - sent(i), more_sent(i));
      parts[i] = std::min(out, room(t * down(i) - 1, more_received(i)));
    }
    return parts;
  }

  /// Below this time even peers without a share are not done.
  double least() const {
    double t = 0;
    for (std::size_t i = 0; i < participants_.size(); ++i) t = std::max({t, sent(i) / up(i), 1 / down(i)});
    return t;
  }

  bool pairs_count() const {
    const std::size_t rows = 2 * participants_.size() + pairs_.size() + 1;
    return !pairs_.empty() && rows * (participants_.size() + 1) <= kMostNumbers;
  }

  /// Largest rate z = 1 / T, and parts in units of z: all constraints are linear in them.
  std::vector<double> best_with_pairs() const {
    double unit = 0;
    for (std::size_t i = 0; i < participants_.size(); ++i) unit = std::max({unit, up(i), down(i)});
    const std::size_t z = participants_.size();
    const Row nothing{std::vector<double>(z + 1), 0};
    std::vector<Row> rows;
    Row all = nothing;
    all.factors[z] = 1;
    for (std::size_t i = 0; i < z; ++i) {
      Row out{nothing.factors, up(i) / unit};
      Row in{nothing.factors, down(i) / unit};
      out.factors[z] = sent(i);
      in.factors[z] = 1;
      if (participants_[i].owns) {
        out.factors[i] = more_sent(i);
        in.factors[i] = more_received(i);
        all.factors[i] = -1;
      }
      rows.push_back(std::move(out));
      rows.push_back(std::move(in));
    }
    for (const Pair& p : pairs_) {
      rows.push_back({nothing.factors, p.bytes_per_s / unit});
      if (participants_[p.from].owns) rows.back().factors[p.from] = 1;
      if (participants_[p.to].owns) rows.back().factors[p.to] = sent(p.from);
    }
    rows.push_back(all);
    std::vector<double> parts = with_largest_last(rows);
    parts.pop_back();
    return parts;
  }

 private:
  struct Pair {
    std::size_t from, to;
    double bytes_per_s;
  };

  static double room(double rest, double each) {
    if (each <= 0) return rest > -kNought ? 1 : 0;
    return std::max(0.0, rest) / each;
  }

  double up(std::size_t i) const { return participants_[i].bandwidth.up_bytes_per_s; }

  double down(std::size_t i) const { return participants_[i].bandwidth.down_bytes_per_s; }

  double sent(std::size_t i) const { return participants_[i].contributions; }

  // Vectors for one more whole share. (Negative values, when one peer alone contributes twice, become 0.)
  double more_sent(std::size_t i) const { return std::max(0.0, n_ - 1 - sent(i)); }

  double more_received(std::size_t i) const { return std::max(0.0, all_ - sent(i) - 1); }

  const std::vector<Participant>& participants_;
  double n_, all_ = 0;
  std::vector<Pair> pairs_;
};

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

bool fill_in(std::vector<Participant>& participants, double wire::Bandwidth::*rate) {
  std::vector<double> known;
  std::map<std::string, std::vector<double>> known_at;
  for (const Participant& participant : participants) {
    if (participant.bandwidth.*rate <= 0) continue;
    known.push_back(participant.bandwidth.*rate);
    if (!participant.site.empty()) known_at[participant.site].push_back(participant.bandwidth.*rate);
  }
  if (known.empty()) return false;
  const double usual = median(std::move(known));
  for (Participant& participant : participants) {
    if (participant.bandwidth.*rate > 0) continue;
    const auto there = known_at.find(participant.site);
    participant.bandwidth.*rate = there == known_at.end() ? usual : median(there->second);
  }
  return true;
}

std::vector<double> in_proportion(std::vector<double> parts) {
  const double all = sum(parts);
  for (double& part : parts) part /= all;
  return parts;
}

std::vector<double> best_without_pairs(const Lines& lines) {
  double low = lines.least();
  for (const double surely : {kSurely, 1.0}) {
    const std::vector<double> room = lines.room(surely * low);
    if (sum(room) >= 1) return in_proportion(room);
  }
  double high = 2 * low;
  while (sum(lines.room(high)) < 1) high *= 2;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (sum(lines.room(middle)) < 1 ? low : high) = middle;
  }
  return in_proportion(lines.room(high));
}

}  // namespace

bool fill_in_lines(std::vector<Participant>& participants) {
  const std::vector<Participant> told = participants;
  if (!fill_in(participants, &wire::Bandwidth::up_bytes_per_s)) return false;
  if (!fill_in(participants, &wire::Bandwidth::down_bytes_per_s)) return false;
  for (std::size_t i = 0; i < participants.size(); ++i) {
    wire::Bandwidth& line = participants[i].bandwidth;
    const auto [up, down] = std::pair(told[i].bandwidth.up_bytes_per_s, told[i].bandwidth.down_bytes_per_s);
    if (up <= 0 && down > 0) line.up_bytes_per_s = std::min(line.up_bytes_per_s, down);
    if (down <= 0 && up > 0) line.down_bytes_per_s = std::min(line.down_bytes_per_s, up);
  }
  return true;
}

Split best_split(std::vector<Participant> participants) {
  TW_CHECK(std::any_of(participants.begin(), participants.end(),
                       [](const Participant& participant) { return participant.owns; }));
  if (!fill_in_lines(participants)) return {};
  if (participants.size() == 1) return {{1.0}, 0};
  const Lines lines(participants);
  Split split{best_without_pairs(lines)};
  split.seconds_per_byte = lines.seconds(split.parts);
  if (!lines.pairs_count()) return split;
  Split other{in_proportion(lines.best_with_pairs())};
  other.seconds_per_byte = lines.seconds(other.parts);
  return other.seconds_per_byte < split.seconds_per_byte * (1 - 1e-9) ? other : split;
}

double bound_seconds(std::uint64_t bytes, const std::vector<Participant>& participants) {
  return static_cast<double>(bytes) * best_split(participants).seconds_per_byte;
}

double seconds_per_byte(const std::vector<double>& parts, std::vector<Participant> participants) {
  TW_CHECK(parts.size() == participants.size());
  if (participants.size() < 2 || !fill_in_lines(participants)) return 0;
  return Lines(participants).seconds(parts);
}

}  // namespace tw::swarm
