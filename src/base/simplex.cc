// SPDX-License-Identifier: Apache-2.0
#include "base/simplex.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "base/check.h"

namespace tw {
namespace {

constexpr double kNought = 1e-11;

/// Names: coordinates from 0 to n - 1, then the slack of each row. At the present corner all `columns` are 0,
/// and each row gives the value of its name in `basis`.
class Tableau {
 public:
  explicit Tableau(std::vector<Row> rows) : rows_(std::move(rows)), gains_(rows_.front().factors.size()) {
    for (std::size_t k = 0; k < gains_.size(); ++k) columns_.push_back(k);
    for (std::size_t r = 0; r < rows_.size(); ++r) basis_.push_back(gains_.size() + r);
    gains_.back() = 1;
  }

  /// False when no step gains anything.
  bool step() {
    const std::optional<std::size_t> column = entering();
    if (!column) return false;
    pivot(leaving(*column), *column);
    return true;
  }

  std::vector<double> corner() const {
    std::vector<double> x(gains_.size());
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (basis_[r] < x.size()) x[basis_[r]] = rows_[r].limit;
    }
    return x;
  }

 private:
  // Bland's rule, here and below: the lowest name that qualifies, so that no corner repeats.
  std::optional<std::size_t> entering() const {
    std::optional<std::size_t> best;
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      if (gains_[k] > kNought && (!best || columns_[k] < columns_[*best])) best = k;
    }
    return best;
  }

  std::size_t leaving(std::size_t column) const {
    std::optional<std::size_t> best;
    double least = 0;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const double factor = rows_[r].factors[column];
      if (factor <= kNought) continue;
      const double ratio = rows_[r].limit / factor;
      const bool tie = best && ratio <= least + kNought && basis_[r] < basis_[*best];
      if (!best || ratio < least - kNought || tie) {
        best = r;
        least = ratio;
      }
    }
    TW_CHECK(best);  // bounded, says the caller
    return *best;
  }

  void pivot(std::size_t row, std::size_t column) {
    Row& leading = rows_[row];
    const double factor = std::exchange(leading.factors[column], 1.0);
    for (double& f : leading.factors) f /= factor;
    leading.limit /= factor;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (r == row) continue;
      const double times = std::exchange(rows_[r].factors[column], 0.0);
      if (times == 0) continue;
      subtract(leading.factors, times, rows_[r].factors);
      rows_[r].limit -= times * leading.limit;
    }
    const double times = std::exchange(gains_[column], 0.0);
    subtract(leading.factors, times, gains_);
    std::swap(columns_[column], basis_[row]);
  }

  static void subtract(const std::vector<double>& what, double times, std::vector<double>& from) {
    for (std::size_t k = 0; k < from.size(); ++k) from[k] -= times * what[k];
  }

  std::vector<Row> rows_;
  std::vector<double> gains_;
  std::vector<std::size_t> columns_, basis_;
};

}  // namespace

std::vector<double> with_largest_last(const std::vector<Row>& rows) {
  TW_CHECK(!rows.empty());
  Tableau tableau(rows);
  while (tableau.step()) {
  }
  return tableau.corner();
}

}  // namespace tw
