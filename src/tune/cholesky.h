// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"

namespace braid {

// A symmetric positive definite matrix as L·Lᵀ, dense: for some dozens of rows. Immutable.
class Cholesky {
 public:
  // `matrix` by rows, n × n; only its lower triangle is read. InvalidArgument: not positive
  // definite to the precision of doubles.
  static Result<Cholesky> factor(std::vector<double> matrix, size_t n);

  // x of A·x = b, and of L·x = b.
  std::vector<double> solve(std::span<const double> b) const;
  std::vector<double> solve_lower(std::span<const double> b) const;
  double log_determinant() const;  // ln |A|

 private:
  Cholesky(std::vector<double> lower, size_t n) : lower_(std::move(lower)), n_(n) {}

  std::vector<double> lower_;
  size_t n_;
};

}  // namespace braid
