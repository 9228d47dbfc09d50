// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "proto/types.h"

namespace braid::bench {

// Inputs whose sum over all ranks is exact in their type, so that the result can be compared byte
// for byte. Each rank has its own pseudo-random small whole numbers, kPeriod of them, repeated;
// each iteration begins somewhere else among them. The period is a prime: no chunk, segment or unit
// begins where another one did, so data that is misplaced is noticed.
class Pattern {
 public:
  static constexpr uint64_t kPeriod = 1021;

  struct Mismatch {
    uint64_t index = 0;  // of the first wrong element
    std::string expected;
    std::string actual;
  };

  // Fails if `dtype` cannot hold the sum over so many ranks exactly.
  static Result<Pattern> create(DataType dtype, uint32_t rank, uint32_t world_size);

  void fill(uint64_t iteration, void* out, uint64_t count) const;
  // Nothing: all `count` elements of the sum are right.
  std::optional<Mismatch> verify(uint64_t iteration, const void* sum, uint64_t count) const;

 private:
  Pattern(DataType dtype, std::vector<uint8_t> input, std::vector<uint8_t> sum)
      : dtype_(dtype), input_(std::move(input)), sum_(std::move(sum)) {}

  DataType dtype_;
  std::vector<uint8_t> input_;  // two periods, so that one period begins anywhere in the first
  std::vector<uint8_t> sum_;
};

}  // namespace braid::bench
