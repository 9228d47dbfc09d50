// SPDX-License-Identifier: Apache-2.0
#include "tune/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace braid {
namespace {

constexpr double kLengthScales[] = {3, 1.5, 0.8, 0.4, 0.2};
constexpr double kFirstLengthScale = 0.8;
constexpr double kDeviationFactors[] = {1, 2, 0.5};
constexpr double kDeviationMin = 0.01;  // 1 % of the seconds: less is nobody's concern
constexpr double kJitter = 1e-9;        // of the variance: keeps equal points apart
constexpr int kSweeps = 2;
// A shorter length scale must explain the points better by so much: few points fit anything.
constexpr double kLikelihoodGainMin = 1;

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double spread_of(const std::vector<GaussianProcess::Point>& points) {
  double mean = 0;
  for (const auto& point : points) mean += point.y / static_cast<double>(points.size());
  double squares = 0;
  for (const auto& point : points) squares += (point.y - mean) * (point.y - mean);
  return std::max(std::sqrt(squares / static_cast<double>(points.size())), kDeviationMin);
}

}  // namespace

GaussianProcess::GaussianProcess(std::vector<Point> points, Kernel kernel)
    : points_(std::move(points)), kernel_(std::move(kernel)), factor_(factor_points()) {
  // The mean that is likeliest: (1ᵀK⁻¹y) / (1ᵀK⁻¹1).
  const std::vector<double> ones(points_.size(), 1);
  std::vector<double> y;
  for (const Point& point : points_) y.push_back(point.y);
  const std::vector<double> solved_ones = factor_.solve(ones);
  mean_ = dot(solved_ones, y) / dot(solved_ones, ones);
  for (double& value : y) value -= mean_;
  weights_ = factor_.solve(y);
  log_likelihood_ = -0.5 * (dot(y, weights_) + factor_.log_determinant() +
                            static_cast<double>(points_.size()) * std::log(2 * std::numbers::pi));
}

Cholesky GaussianProcess::factor_points() const {
  const size_t n = points_.size();
  std::vector<double> matrix(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) matrix[i * n + j] = covariance(points_[i].x, points_[j].x);
    matrix[i * n + i] += points_[i].noise * points_[i].noise;
    matrix[i * n + i] += kJitter * kernel_.deviation * kernel_.deviation;
  }
  auto factor = Cholesky::factor(std::move(matrix), n);
  BRAID_ASSERT(factor, "a kernel matrix with jitter is positive definite");
  return std::move(factor).value();
}

double GaussianProcess::covariance(std::span<const double> a, std::span<const double> b) const {
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = (a[i] - b[i]) / kernel_.length_scales[i];
    squares += difference * difference;
  }
  const double r = std::sqrt(5 * squares);
  return kernel_.deviation * kernel_.deviation * (1 + r + r * r / 3) * std::exp(-r);
}

GaussianProcess GaussianProcess::fit(std::vector<Point> points) {
  BRAID_ASSERT(!points.empty(), "a process through no points");
  const size_t dimensions = points.front().x.size();
  const double spread = spread_of(points);
  GaussianProcess best(points, {std::vector<double>(dimensions, kFirstLengthScale), spread});
  bool improved = true;
  const auto try_kernel = [&](const Kernel& kernel) {
    GaussianProcess other(points, kernel);
    if (other.log_likelihood() > best.log_likelihood() + kLikelihoodGainMin) {
      best = std::move(other);
      improved = true;
    }
  };
  for (int sweep = 0; sweep < kSweeps && improved; ++sweep) {
    improved = false;
    for (size_t i = 0; i < dimensions; ++i) {
      for (const double length_scale : kLengthScales) {
        if (length_scale == best.kernel_.length_scales[i]) continue;
        Kernel kernel = best.kernel_;
        kernel.length_scales[i] = length_scale;
        try_kernel(kernel);
      }
    }
    for (const double factor : kDeviationFactors) {
      try_kernel({best.kernel_.length_scales, spread * factor});
    }
  }
  return best;
}

GaussianProcess::Prediction GaussianProcess::predict(std::span<const double> x) const {
  std::vector<double> covariances;
  for (const Point& point : points_) covariances.push_back(covariance(point.x, x));
  const std::vector<double> solved = factor_.solve_lower(covariances);
  const double variance = kernel_.deviation * kernel_.deviation - dot(solved, solved);
  return {mean_ + dot(covariances, weights_), std::sqrt(std::max(0.0, variance))};
}

}  // namespace braid
