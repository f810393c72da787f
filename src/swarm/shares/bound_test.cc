// SPDX-License-Identifier: Apache-2.0
#include "swarm/shares/bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/prng.h"
#include "base/simplex.h"

namespace tw::swarm {
namespace {

Participant participant(std::uint64_t id, double up, double down) {
  return {PeerId{id}, true, 1, {up, down, {}}};
}

double rate(Prng& prng) { return std::exp(prng.uniform() * 5); }

std::vector<Participant> some_participants(Prng& prng, std::uint64_t least, std::uint64_t most) {
  std::vector<Participant> participants;
  const std::uint64_t n = least + prng.below(most - least + 1);
  for (std::uint64_t id = 1; id <= n; ++id) participants.push_back(participant(id, rate(prng), rate(prng)));
  return participants;
}

double capacity(const Participant& participant) {
  return std::min(participant.bandwidth.up_bytes_per_s, participant.bandwidth.down_bytes_per_s);
}

TEST(Bound, is_the_closed_form_where_everybody_owns_and_contributes) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Prng prng(seed);
    const std::vector<Participant> participants = some_participants(prng, 2, 12);
    const auto n = static_cast<double>(participants.size());
    double all = 0, least = INFINITY;
    for (const Participant& h : participants) {
      all += capacity(h);
      least = std::min(least, capacity(h));
    }
    const double t = std::max(1 / least, 2 * (n - 1) / all);
    const Split split = best_split(participants);
    ASSERT_NEAR(split.seconds_per_byte, t, 1e-6 * t) << "seed " << seed;
    if (n < 3) continue;
    double surely = 0.85, room = 0;
    const auto rooms = [&](const Participant& h) { return std::max(0.0, surely * t * capacity(h) - 1); };
    const auto all_rooms = [&] {
      room = 0;
      for (const Participant& h : participants) room += rooms(h);
      return room;
    };
    if (all_rooms() < n - 2) surely = 1;
    all_rooms();
    for (std::size_t i = 0; i < participants.size(); ++i) {
      ASSERT_NEAR(split.parts[i], rooms(participants[i]) / room, 1e-6) << "seed " << seed;
    }
  }
}

TEST(Bound, of_two_fast_and_two_slow_lines_leaves_the_slow_ones_without_a_share) {
  std::vector<Participant> participants;
  for (const double mbit : {1000, 1000, 200, 200}) {
    participants.push_back(participant(participants.size() + 1, mbit * 125e3, mbit * 125e3));
  }
  const std::vector<double> parts = best_split(participants).parts;
  EXPECT_NEAR(parts[0], 0.5, 1e-6);
  EXPECT_NEAR(parts[2], 0, 1e-6);
  EXPECT_NEAR(bound_seconds(25'000'000, participants), 1, 1e-6);
}

TEST(Bound, leaves_a_line_without_a_share_that_is_hardly_faster_than_the_slowest) {
  std::vector<Participant> participants;
  for (const double mbit : {1000, 400, 215, 200}) {
    participants.push_back(participant(participants.size() + 1, mbit * 125e3, mbit * 125e3));
  }
  EXPECT_EQ(best_split(participants).parts[2], 0);
  EXPECT_GT(best_split(participants).parts[1], 0.1);
}

TEST(Bound, is_unknown_when_no_line_is_and_takes_the_median_for_one_that_is_not) {
  std::vector<Participant> participants = {participant(1, 0, 0), participant(2, 0, 0), participant(3, 0, 0),
                                           participant(4, 0, 0)};
  EXPECT_TRUE(best_split(participants).parts.empty());
  EXPECT_EQ(bound_seconds(1000, participants), 0);
  participants[1] = participant(2, 10, 10);
  participants[2] = participant(3, 20, 20);
  participants[3] = participant(4, 90, 90);
  std::vector<Participant> filled = participants;
  filled[0] = participant(1, 20, 20);
  EXPECT_EQ(best_split(participants).parts, best_split(filled).parts);
}

// A joiner over a slow line has fetched a state, and sent nothing yet.
TEST(Bound, takes_a_line_for_no_faster_in_one_direction_than_it_is_known_to_be_in_the_other) {
  std::vector<Participant> participants = {participant(1, 20, 20), participant(2, 20, 20),
                                           participant(3, 0, 2), participant(4, 0, 90)};
  ASSERT_TRUE(fill_in_lines(participants));
  EXPECT_EQ(2, participants[2].bandwidth.up_bytes_per_s);
  EXPECT_EQ(20, participants[3].bandwidth.up_bytes_per_s) << "others are no faster";
}

TEST(Bound, of_nobody_is_beaten_by_any_other_split_of_who_contributes_and_owns_what) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Prng prng(seed);
    std::vector<Participant> participants = some_participants(prng, 3, 8);
    for (std::size_t i = 1; i < participants.size(); ++i) {
      participants[i].owns = prng.chance(0.7);
      participants[i].contributions = static_cast<std::uint32_t>(prng.below(2));
    }
    const Split split = best_split(participants);
    ASSERT_NEAR(std::accumulate(split.parts.begin(), split.parts.end(), 0.0), 1, 1e-9);
    ASSERT_NEAR(split.seconds_per_byte, seconds_per_byte(split.parts, participants), 1e-9);
    for (int attempt = 0; attempt < 50; ++attempt) {
      std::vector<double> other = split.parts;
      double all = 0;
      for (std::size_t i = 0; i < participants.size(); ++i) {
        ASSERT_TRUE(participants[i].owns || other[i] == 0) << "seed " << seed;
        if (participants[i].owns) other[i] = std::max(0.0, other[i] + (prng.uniform() - 0.5) * 0.2);
        all += other[i];
      }
      if (all == 0) continue;
      for (double& part : other) part /= all;
      ASSERT_GE(seconds_per_byte(other, participants), split.seconds_per_byte * (1 - 1e-9))
          << "seed " << seed;
    }
  }
}

// ---- pairs: a judge that tries all corners

using Matrix = std::vector<std::vector<double>>;

std::optional<std::vector<double>> solve(Matrix a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t best = k;
    for (std::size_t r = k; r < n; ++r) best = std::abs(a[r][k]) > std::abs(a[best][k]) ? r : best;
    if (std::abs(a[best][k]) < 1e-9) return std::nullopt;
    std::swap(a[k], a[best]);
    std::swap(b[k], b[best]);
    for (std::size_t r = 0; r < n; ++r) {
      if (r == k) continue;
      const double times = a[r][k] / a[k][k];
      for (std::size_t c = k; c < n; ++c) a[r][c] -= times * a[k][c];
      b[r] -= times * b[k];
    }
  }
  for (std::size_t k = 0; k < n; ++k) b[k] /= a[k][k];
  return b;
}

bool keeps(const std::vector<Row>& rows, const std::vector<double>& x) {
  return std::all_of(rows.begin(), rows.end(), [&](const Row& row) {
    const double value = std::inner_product(x.begin(), x.end(), row.factors.begin(), 0.0);
    return value <= row.limit + 1e-7;
  });
}

/// Largest last coordinate over all vertices, where as many rows as coordinates hold with equality.
double best_corner(std::vector<Row> rows, std::size_t n) {
  for (std::size_t k = 0; k < n; ++k) {
    rows.push_back({std::vector<double>(n), 0});
    rows.back().factors[k] = -1;
  }
  std::vector<bool> chosen(rows.size());
  std::fill_n(chosen.begin(), n, true);
  double best = 0;
  do {
    Matrix a;
    std::vector<double> b;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (!chosen[r]) continue;
      a.push_back(rows[r].factors);
      b.push_back(rows[r].limit);
    }
    const auto x = solve(a, b);
    if (x && keeps(rows, *x)) best = std::max(best, x->back());
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return best;
}

TEST(Simplex, finds_the_best_of_all_corners) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Prng prng(seed);
    const std::size_t n = 2 + prng.below(3);
    std::vector<Row> rows;
    for (std::uint64_t r = 3 + prng.below(7); r > 0; --r) {
      Row row{std::vector<double>(n), static_cast<double>(prng.below(4))};
      for (double& factor : row.factors) factor = static_cast<double>(prng.below(7)) - 2;
      rows.push_back(std::move(row));
    }
    for (std::size_t k = 0; k < n; ++k) {
      rows.push_back({std::vector<double>(n), 10});
      rows.back().factors[k] = 1;
    }
    const std::vector<double> x = with_largest_last(rows);
    ASSERT_TRUE(keeps(rows, x)) << "seed " << seed;
    ASSERT_NEAR(x.back(), best_corner(rows, n), 1e-7) << "seed " << seed;
  }
}

/// Largest rate from the definition of Split, for three peers that all own and contribute.
double judged_rate(const std::vector<Participant>& participants) {
  const std::size_t n = participants.size();
  const auto peers = static_cast<double>(n);
  std::vector<Row> rows;
  const auto row = [&](double limit) -> Row& {
    return rows.emplace_back(Row{std::vector<double>(n + 1), limit});
  };
  for (std::size_t i = 0; i < n; ++i) {
    Row& line = row(capacity(participants[i]));
    line.factors[n] = 1;
    line.factors[i] = peers - 2;
    for (const wire::PairRate& slow : participants[i].bandwidth.slow) {
      Row& pair = row(slow.bytes_per_s);
      pair.factors[i] = pair.factors[slow.to.value - 1] = 1;
    }
  }
  Row& all = row(0);
  std::fill(all.factors.begin(), all.factors.end(), -1);
  all.factors[n] = 1;
  return best_corner(rows, n + 1);
}

TEST(Bound, with_slow_pairs_is_the_best_that_any_shares_reach) {
  int bound_by_pairs = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Prng prng(seed);
    std::vector<Participant> participants = some_participants(prng, 3, 4);
    const std::size_t n = participants.size();
    const double without = best_split(participants).seconds_per_byte;
    for (std::uint64_t k = 1 + prng.below(4); k > 0; --k) {
      const std::size_t from = prng.below(n);
      const std::size_t to = (from + 1 + prng.below(n - 1)) % n;
      participants[from].bandwidth.slow.push_back({participants[to].peer, 0.3 * rate(prng)});
    }
    const Split split = best_split(participants);
    ASSERT_NEAR(split.seconds_per_byte, 1 / judged_rate(participants), 1e-5 * split.seconds_per_byte)
        << "seed " << seed;
    ASSERT_NEAR(split.seconds_per_byte, seconds_per_byte(split.parts, participants),
                1e-9 * split.seconds_per_byte);
    bound_by_pairs += split.seconds_per_byte > without * 1.01 ? 1 : 0;
  }
  EXPECT_GT(bound_by_pairs, 20);
}

}  // namespace
}  // namespace tw::swarm
