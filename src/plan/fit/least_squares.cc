// SPDX-License-Identifier: Apache-2.0
#include "plan/fit/least_squares.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace tw::plan {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

constexpr int kSteps = 200;
constexpr double kDifference = 1e-5;
constexpr double kSmallGain = 1e-10;

double loss_of(const Vector& residuals, double limit) {
  double sum = 0;
  for (const double r : residuals) sum += 2 * (std::sqrt(1 + r * r / (limit * limit)) - 1);
  return sum;
}

/// Gaussian elimination with pivoting.
Vector solve(Matrix a, Vector b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::abs(a[i][k]) > std::abs(a[pivot][k])) pivot = i;
    std::swap(a[k], a[pivot]);
    std::swap(b[k], b[pivot]);
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

/// Normal equations of the weighted residuals around a point.
struct Slope {
  Matrix squares;
  Vector gradient;
};

Slope slope_at(const Vector& x, const Vector& r, const Residuals& residuals, double limit) {
  const std::size_t n = x.size();
  Matrix columns;
  for (std::size_t k = 0; k < n; ++k) {
    Vector moved = x;
    moved[k] += kDifference;
    Vector column = residuals(moved);
    for (std::size_t i = 0; i < r.size(); ++i) column[i] = (column[i] - r[i]) / kDifference;
    columns.push_back(std::move(column));
  }
  Slope slope{Matrix(n, Vector(n)), Vector(n)};
  for (std::size_t i = 0; i < r.size(); ++i) {
    const double weight = 1 / std::sqrt(1 + r[i] * r[i] / (limit * limit));
    for (std::size_t k = 0; k < n; ++k) {
      slope.gradient[k] -= weight * columns[k][i] * r[i];
      for (std::size_t l = 0; l < n; ++l) slope.squares[k][l] += weight * columns[k][i] * columns[l][i];
    }
  }
  return slope;
}

}  // namespace

Vector least_squares(Vector start, const Residuals& residuals, double limit) {
  Vector r = residuals(start);
  double loss = loss_of(r, limit);
  double damping = 1e-3;
  for (int step = 0; step < kSteps; ++step) {
    Slope slope = slope_at(start, r, residuals, limit);
    for (std::size_t k = 0; k < start.size(); ++k) slope.squares[k][k] *= 1 + damping;
    const Vector move = solve(std::move(slope.squares), std::move(slope.gradient));
    Vector tried = start;
    for (std::size_t k = 0; k < start.size(); ++k) tried[k] += move[k];
    Vector tried_r = residuals(tried);
    const double tried_loss = loss_of(tried_r, limit);
    if (!(tried_loss < loss)) {
      damping *= 10;
      if (damping > 1e8) break;
      continue;
    }
    const double gain = loss - tried_loss;
    start = std::move(tried);
    r = std::move(tried_r);
    loss = tried_loss;
    damping = std::max(damping / 10, 1e-9);
    if (gain < kSmallGain * loss) break;
  }
  return start;
}

}  // namespace tw::plan
