// SPDX-License-Identifier: Apache-2.0
#include "planner/fitted_cost.h"

#include <algorithm>
#include <cmath>

namespace braid {
namespace {

Status band_error(size_t i, const char* field, double value, std::string_view right) {
  return make_status(StatusCode::InvalidArgument, "bands[{}].{}: {} does not fit; right is {}", i,
                     field, value, right);
}

Status check_band(size_t i, const FittedCost::Band& band) {
  const auto [startup, per_byte] = band.cost;
  if (band.bytes_min == 0) return band_error(i, "bytes_min", 0, "1 or more");
  if (band.bytes_max < band.bytes_min) {
    return band_error(i, "bytes_max", static_cast<double>(band.bytes_max),
                      fmt::format("bytes_min ({}) or more", band.bytes_min));
  }
  if (!std::isfinite(startup)) return band_error(i, "startup_seconds", startup, "finite");
  if (!std::isfinite(per_byte) || per_byte < 0) {
    return band_error(i, "seconds_per_byte", per_byte, "0 or more");
  }
  if (i == 0 && startup < 0) {
    return band_error(i, "startup_seconds", startup, "0 or more in the first band");
  }
  return Status::ok();
}

// The largest size of (below, bytes_max] that costs less than `floor`; `below` if none does.
uint64_t last_below(const LinearCost& cost, double floor, uint64_t below, uint64_t bytes_max) {
  while (below < bytes_max) {
    const uint64_t middle = bytes_max - (bytes_max - below) / 2;
    if (cost.seconds(static_cast<double>(middle)) < floor) {
      below = middle;
    } else {
      bytes_max = middle - 1;
    }
  }
  return below;
}

}  // namespace

FittedCost::FittedCost(std::vector<Band> bands, std::vector<Slowdown> slowdowns)
    : bands_(std::move(bands)), slowdowns_(std::move(slowdowns)) {
  double floor = 0;  // what the bands so far reach
  uint64_t below = 0;
  // How much of what `bytes` take may be a startup.
  const auto startup_of = [this](const Band& band, double seconds, uint64_t bytes) {
    const double shared = bands_.back().cost.seconds_per_byte * static_cast<double>(bytes);
    return std::clamp(band.cost.startup_seconds, 0.0, std::max(seconds - shared, 0.0));
  };
  for (const Band& band : bands_) {
    const uint64_t bytes_max = &band == &bands_.back() ? UINT64_MAX : band.bytes_max;
    const uint64_t flat_until = last_below(band.cost, floor, below, bytes_max);
    if (flat_until > below) {
      const double startup = startup_of(band, floor, flat_until);
      lines_.push_back({flat_until, startup, floor - startup, 0});
    }
    if (flat_until < bytes_max) {
      const double startup =
          &band == &bands_.back()
              ? std::max(band.cost.startup_seconds, 0.0)
              : startup_of(band, band.cost.seconds(static_cast<double>(bytes_max)), bytes_max);
      lines_.push_back(
          {bytes_max, startup, band.cost.startup_seconds - startup, band.cost.seconds_per_byte});
    }
    floor = std::max(floor, band.cost.seconds(static_cast<double>(band.bytes_max)));
    below = band.bytes_max;
  }
}

Result<FittedCost> FittedCost::create(std::vector<Band> bands, std::vector<Slowdown> slowdowns) {
  BRAID_RETURN_IF_ERROR(check(bands, slowdowns));
  return FittedCost(std::move(bands), std::move(slowdowns));
}

Status FittedCost::check(const std::vector<Band>& bands, const std::vector<Slowdown>& slowdowns) {
  if (bands.empty() || bands.size() > kBandsMax) {
    return make_status(StatusCode::InvalidArgument, "bands: {} of them; right are 1 to {}",
                       bands.size(), kBandsMax);
  }
  for (size_t i = 0; i < bands.size(); ++i) {
    BRAID_RETURN_IF_ERROR(check_band(i, bands[i]));
    if (i > 0 && bands[i].bytes_min <= bands[i - 1].bytes_max) {
      return band_error(i, "bytes_min", static_cast<double>(bands[i].bytes_min),
                        "more than bytes_max of the band before it");
    }
  }
  Slowdown last = {1, 1};
  for (size_t i = 0; i < slowdowns.size(); ++i) {
    const auto [transfers, factor] = slowdowns[i];
    if (transfers <= last.transfers || transfers > kTransfersMax) {
      return make_status(StatusCode::InvalidArgument,
                         "slowdowns[{}].transfers: {} does not fit; right are {} to {}", i,
                         transfers, last.transfers + 1, kTransfersMax);
    }
    if (!(factor >= last.factor && factor <= transfers)) {
      return make_status(StatusCode::InvalidArgument,
                         "slowdowns[{}].factor: {} does not fit; right are {} to {}", i, factor,
                         last.factor, transfers);
    }
    last = slowdowns[i];
  }
  return Status::ok();
}

CostModel::Phases FittedCost::phases(uint64_t bytes) const {
  const auto line = std::find_if(lines_.begin(), lines_.end() - 1,
                                 [bytes](const Line& one) { return bytes <= one.bytes_max; });
  return line->phases(bytes);
}

double FittedCost::slowdown(uint32_t transfers) const {
  if (transfers <= 1) return 1;
  if (slowdowns_.empty()) return transfers;
  Slowdown low = {1, 1};
  Slowdown high = slowdowns_.front();
  for (size_t i = 1; i < slowdowns_.size() && high.transfers < transfers; ++i) {
    low = high;
    high = slowdowns_[i];
  }
  const double slope = (high.factor - low.factor) / (high.transfers - low.transfers);
  const double factor =
      low.factor + slope * (static_cast<double>(transfers) - static_cast<double>(low.transfers));
  return std::clamp(factor, 1.0, static_cast<double>(transfers));
}

}  // namespace braid
