// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "planner/cost_model.h"

namespace braid {

// What was measured: T(M) is linear within each band of sizes and may jump from one to the next (a
// transport changes its protocol at some size). Made by fit_cost, or read from a file.
//
// Outside the measured sizes it continues the nearest band: that is a guess, and covers() says so.
// Callers warn or refuse. Immutable; any thread.
class FittedCost final : public CostModel {
 public:
  static constexpr size_t kBandsMax = 64;
  static constexpr uint32_t kTransfersMax = 1024;

  struct Band {
    uint64_t bytes_min = 0;  // the smallest and
    uint64_t bytes_max = 0;  // the largest measured size in it
    LinearCost cost;         // of a file: the startup may be negative where a band is steep
    uint32_t sizes = 0;      // distinct sizes it was fitted to
    double residual = 0;     // median over them of |measured − fitted| / fitted
    bool operator==(const Band&) const = default;
  };
  // See CostModel::slowdown.
  struct Slowdown {
    uint32_t transfers = 2;
    double factor = 2;
    bool operator==(const Slowdown&) const = default;
  };

  // Bands in the order of their sizes, without overlap; slowdowns by `transfers`, from 2. Errors
  // name the entry: "bands[1].bytes_min: …".
  static Result<FittedCost> create(std::vector<Band> bands, std::vector<Slowdown> slowdowns);

  // A band's own startup is one only as far as its transfers, too, take what the largest sizes take
  // for each byte: the network has no more to give than these get out of it, and several units side
  // by side share it.
  Phases phases(uint64_t bytes) const override;
  // Between measured numbers of transfers on a straight line, beyond the last one on the line
  // through the last two. Nothing measured: `transfers`.
  double slowdown(uint32_t transfers) const override;
  std::vector<Line> lines() const override { return lines_; }

  uint64_t bytes_min() const { return bands_.front().bytes_min; }
  uint64_t bytes_max() const { return bands_.back().bytes_max; }
  bool covers(uint64_t bytes) const { return bytes >= bytes_min() && bytes <= bytes_max(); }

  const std::vector<Band>& bands() const { return bands_; }
  const std::vector<Slowdown>& slowdowns() const { return slowdowns_; }
  bool operator==(const FittedCost& other) const {
    return bands_ == other.bands_ && slowdowns_ == other.slowdowns_;
  }

 private:
  FittedCost(std::vector<Band> bands, std::vector<Slowdown> slowdowns);
  static Status check(const std::vector<Band>& bands, const std::vector<Slowdown>& slowdowns);

  std::vector<Band> bands_;
  // A size between two bands costs what it costs in the upper one, and no size costs less than what
  // the bands below it reach: a band that begins lower is flat at first, a line of its own.
  std::vector<Line> lines_;
  std::vector<Slowdown> slowdowns_;
};

// {"bands": [{"bytes_min", "bytes_max", "startup_seconds", "seconds_per_byte", "sizes",
// "residual"}, …], "slowdowns": [{"transfers", "factor"}, …]}; "sizes", "residual" and "slowdowns"
// may be missing. Errors begin with `file` and name the entry.
Result<FittedCost> parse_cost(std::string_view text, std::string_view file);
Result<FittedCost> load_cost(const std::string& path);
std::string to_json(const FittedCost& cost);

}  // namespace braid
