// SPDX-License-Identifier: Apache-2.0
#include "tune/cholesky.h"

#include <cmath>

namespace braid {

Result<Cholesky> Cholesky::factor(std::vector<double> matrix, size_t n) {
  BRAID_ASSERT(matrix.size() == n * n, "the matrix is not square");
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = matrix[i * n + j];
      for (size_t k = 0; k < j; ++k) sum -= matrix[i * n + k] * matrix[j * n + k];
      if (i != j) {
        matrix[i * n + j] = sum / matrix[j * n + j];
      } else if (sum > 0) {  // false for what is no number
        matrix[i * n + i] = std::sqrt(sum);
      } else {
        return make_status(StatusCode::InvalidArgument, "row {}: not positive definite", i);
      }
    }
  }
  return Cholesky(std::move(matrix), n);
}

std::vector<double> Cholesky::solve_lower(std::span<const double> b) const {
  BRAID_ASSERT(b.size() == n_, "the right side has another length");
  std::vector<double> x(b.begin(), b.end());
  for (size_t i = 0; i < n_; ++i) {
    for (size_t k = 0; k < i; ++k) x[i] -= lower_[i * n_ + k] * x[k];
    x[i] /= lower_[i * n_ + i];
  }
  return x;
}

std::vector<double> Cholesky::solve(std::span<const double> b) const {
  std::vector<double> x = solve_lower(b);
  for (size_t i = n_; i-- > 0;) {
    for (size_t k = i + 1; k < n_; ++k) x[i] -= lower_[k * n_ + i] * x[k];
    x[i] /= lower_[i * n_ + i];
  }
  return x;
}

double Cholesky::log_determinant() const {
  double sum = 0;
  for (size_t i = 0; i < n_; ++i) sum += std::log(lower_[i * n_ + i]);
  return 2 * sum;
}

}  // namespace braid
