// SPDX-License-Identifier: Apache-2.0
#include "tune/cholesky.h"

#include <cmath>
#include <utility>

#include <gtest/gtest.h>

#include "tune/random_generator.h"

namespace braid {
namespace {

// B·Bᵀ + I/10 of a random B: symmetric, positive definite.
std::vector<double> random_positive_definite(size_t n, RandomGenerator& random) {
  std::vector<double> b(n * n);
  for (double& value : b) value = 2 * random.unit() - 1;
  std::vector<double> a(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t k = 0; k < n; ++k) a[i * n + j] += b[i * n + k] * b[j * n + k];
    }
    a[i * n + i] += 0.1;
  }
  return a;
}

struct DirectSolution {
  std::vector<double> x;
  double determinant = 1;
};

// Gauß elimination with pivoting.
DirectSolution solve_directly(std::vector<double> a, std::vector<double> b) {
  const size_t n = b.size();
  DirectSolution solution;
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t i = column; i < n; ++i) {
      if (std::abs(a[i * n + column]) > std::abs(a[pivot * n + column])) pivot = i;
    }
    if (pivot != column) {
      for (size_t j = 0; j < n; ++j) std::swap(a[pivot * n + j], a[column * n + j]);
      std::swap(b[pivot], b[column]);
      solution.determinant *= -1;
    }
    solution.determinant *= a[column * n + column];
    for (size_t i = column + 1; i < n; ++i) {
      const double factor = a[i * n + column] / a[column * n + column];
      for (size_t j = column; j < n; ++j) a[i * n + j] -= factor * a[column * n + j];
      b[i] -= factor * b[column];
    }
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t j = i + 1; j < n; ++j) b[i] -= a[i * n + j] * b[j];
    b[i] /= a[i * n + i];
  }
  solution.x = std::move(b);
  return solution;
}

TEST(Cholesky, SolvesWhatDirectEliminationSolves) {
  RandomGenerator random(1);
  for (size_t n = 1; n <= 12; ++n) {
    const std::vector<double> a = random_positive_definite(n, random);
    std::vector<double> b(n);
    for (double& value : b) value = 2 * random.unit() - 1;
    const auto factor = Cholesky::factor(a, n);
    ASSERT_TRUE(factor) << factor.status().message();
    const DirectSolution direct = solve_directly(a, b);
    const std::vector<double> x = factor->solve(b);
    for (size_t i = 0; i < n; ++i) EXPECT_NEAR(x[i], direct.x[i], 1e-9);
    EXPECT_NEAR(factor->log_determinant(), std::log(direct.determinant), 1e-9);
  }
}

TEST(Cholesky, TheLowerHalfsSolutionHasTheLengthOfTheWhole) {
  RandomGenerator random(2);
  const auto factor = Cholesky::factor(random_positive_definite(6, random), 6);
  ASSERT_TRUE(factor);
  const std::vector<double> b = {1, -2, 3, 0, 5, 1};
  const std::vector<double> half = factor->solve_lower(b);
  const std::vector<double> whole = factor->solve(b);
  double squares = 0;
  double product = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    squares += half[i] * half[i];
    product += b[i] * whole[i];
  }
  EXPECT_NEAR(squares, product, 1e-9);
}

TEST(Cholesky, RefusesWhatIsNotPositiveDefinite) {
  EXPECT_FALSE(Cholesky::factor({1, 2, 2, 1}, 2));
  EXPECT_FALSE(Cholesky::factor({0}, 1));
  EXPECT_FALSE(Cholesky::factor({std::nan("")}, 1));
}

}  // namespace
}  // namespace braid
