// SPDX-License-Identifier: Apache-2.0
#include "plan/fitted_cost.h"

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

}  // namespace

FittedCost::FittedCost(std::vector<Band> bands, std::vector<Slowdown> slowdowns)
    : bands_(std::move(bands)), slowdowns_(std::move(slowdowns)) {
  double floor = 0;
  for (const Band& band : bands_) {
    floors_.push_back(floor);
    floor = std::max(floor, band.cost.seconds(static_cast<double>(band.bytes_max)));
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

size_t FittedCost::band_of(uint64_t bytes) const {
  const auto found = std::find_if(bands_.begin(), bands_.end() - 1,
                                  [bytes](const Band& band) { return bytes <= band.bytes_max; });
  return static_cast<size_t>(found - bands_.begin());
}

CostModel::Phases FittedCost::phases(uint64_t bytes) const {
  const size_t i = band_of(bytes);
  const LinearCost& cost = bands_[i].cost;
  const double total = std::max(floors_[i], cost.seconds(static_cast<double>(bytes)));
  const double shared = bands_.back().cost.seconds_per_byte * static_cast<double>(bytes);
  const double startup = std::clamp(cost.startup_seconds, 0.0, std::max(0.0, total - shared));
  return {startup, total - startup};
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

std::optional<LinearCost> FittedCost::linear() const {
  if (bands_.size() > 1) return std::nullopt;
  return bands_.front().cost;
}

}  // namespace braid
