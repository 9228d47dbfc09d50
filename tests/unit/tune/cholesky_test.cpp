// SPDX-License-Identifier: Apache-2.0
#include "tune/cholesky.h"

#include <cmath>

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

TEST(Cholesky, SolvesTheEquations) {
  RandomGenerator random(1);
  for (size_t n = 1; n <= 12; ++n) {
    const std::vector<double> a = random_positive_definite(n, random);
    std::vector<double> b(n);
    for (double& value : b) value = 2 * random.unit() - 1;
    const auto factor = Cholesky::factor(a, n).value();
    const std::vector<double> x = factor.solve(b);
    for (size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (size_t j = 0; j < n; ++j) sum += a[i * n + j] * x[j];
      EXPECT_NEAR(sum, b[i], 1e-9);
    }
  }
}

TEST(Cholesky, KnowsTheDeterminant) {
  EXPECT_NEAR(Cholesky::factor({5}, 1)->log_determinant(), std::log(5), 1e-12);
  EXPECT_NEAR(Cholesky::factor({4, 2, 2, 3}, 2)->log_determinant(), std::log(8), 1e-12);
  EXPECT_NEAR(Cholesky::factor({2, 1, 0, 1, 2, 1, 0, 1, 2}, 3)->log_determinant(), std::log(4),
              1e-12);
}

TEST(Cholesky, TheLowerHalfsSolutionHasTheLengthOfTheWhole) {
  RandomGenerator random(2);
  const auto factor = Cholesky::factor(random_positive_definite(6, random), 6).value();
  const std::vector<double> b = {1, -2, 3, 0, 5, 1};
  const std::vector<double> half = factor.solve_lower(b);
  const std::vector<double> whole = factor.solve(b);
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
