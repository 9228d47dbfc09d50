// SPDX-License-Identifier: Apache-2.0
#include "braidctl/axis.h"

#include <cmath>

#include <fmt/format.h>

namespace braid {
namespace {

constexpr double kRounding = 1e-9;  // ticks must not vanish for the last bit

std::vector<double> even_ticks(double low, double high, size_t count) {
  const double raw = (high - low) / static_cast<double>(count);
  if (!std::isnormal(raw)) return {};  // no step that a double could add up
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * (1 - kRounding)) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  const double last = std::floor(high / step + kRounding);
  for (double i = std::ceil(low / step - kRounding); i <= last; ++i)
    ticks.push_back(i * step + 0.0);  // no −0
  return ticks;
}

// 1, 2 and 5 of each decade, or less of them if that gives too many.
std::vector<double> logarithmic_ticks(double low, double high, size_t count) {
  std::vector<double> ticks;
  for (const auto& factors :
       {std::vector<double>{1, 2, 5}, std::vector<double>{1, 3}, std::vector<double>{1}}) {
    ticks.clear();
    for (double decade = std::floor(std::log10(low)); decade <= std::log10(high); ++decade) {
      for (const double factor : factors) {
        const double value = factor * std::pow(10, decade);
        if (value >= low * (1 - kRounding) && value <= high * (1 + kRounding)) {
          ticks.push_back(value);
        }
      }
    }
    if (ticks.size() <= count + count / 2) break;
  }
  return ticks;
}

}  // namespace

double Axis::pixel(double value) const {
  const double share =
      is_logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return low_pixel + share * (high_pixel - low_pixel);
}

std::vector<double> Axis::ticks(size_t count) const {
  return is_logarithmic ? logarithmic_ticks(low, high, count) : even_ticks(low, high, count);
}

std::string format_number(double value) { return fmt::format("{:.6g}", value); }

TimeUnit time_unit(double seconds) {
  if (seconds < 1e-3) return {"µs", 1e6};
  if (seconds < 10) return {"ms", 1e3};
  return {"s", 1};
}

}  // namespace braid
