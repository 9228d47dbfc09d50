// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tune/cholesky.h"

namespace braid {

// Believes that a function is smooth, and says at any place what it expects and how sure it is.
// Matérn 5/2 kernel, one length scale for each coordinate, constant mean. Rasmussen & Williams,
// "Gaussian Processes for Machine Learning" (2006), algorithm 2.1 and §4.2. Immutable.
class GaussianProcess {
 public:
  struct Point {
    std::vector<double> x;  // in [0, 1] each
    double y = 0;
    double noise = 0;  // standard error of y
  };
  struct Kernel {
    std::vector<double> length_scales;
    double deviation = 1;  // of the function from its mean
  };
  struct Prediction {
    double mean = 0;
    double deviation = 0;  // of the function itself, without noise
  };

  GaussianProcess(std::vector<Point> points, Kernel kernel);
  // With the kernel under which the points are likeliest, out of a few: length scales of 0.2 to 3,
  // chosen one coordinate after the other, long ones where it makes no difference, and three
  // deviations. One point or more.
  static GaussianProcess fit(std::vector<Point> points);

  Prediction predict(std::span<const double> x) const;
  double log_likelihood() const { return log_likelihood_; }
  const Kernel& kernel() const { return kernel_; }

 private:
  double covariance(std::span<const double> a, std::span<const double> b) const;
  Cholesky factor_points() const;

  std::vector<Point> points_;
  Kernel kernel_;
  Cholesky factor_;
  double mean_ = 0;
  std::vector<double> weights_;  // K⁻¹ (y − mean)
  double log_likelihood_ = 0;
};

}  // namespace braid
