// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/types.h"

namespace braid::bench {

// Inputs whose reduction over all ranks is exact in their type, so that a result can be compared
// byte for byte. Each rank has its own pseudo-random small whole numbers, kPeriod of them,
// repeated; each iteration begins somewhere else among them. The period is a prime: no chunk,
// segment or unit begins where another one did, so data that is misplaced is noticed.
class Pattern {
 public:
  static constexpr uint64_t kPeriod = 1021;

  struct Mismatch {
    uint64_t index = 0;  // of the first wrong element
    std::string expected;
    std::string actual;
    uint64_t wrong = 0;  // elements
  };

  // Fails if `dtype` cannot hold the reduction over so many ranks exactly. No reduction: the inputs
  // are for collectives that copy.
  static Result<Pattern> create(DataType dtype, uint32_t rank, uint32_t world_size,
                                std::optional<Reduction> reduction = Reduction::Sum);

  void fill(uint64_t iteration, void* out, uint64_t count) const;
  // Nothing: all `count` elements of the reduction are right. They are those from `first` on.
  std::optional<Mismatch> verify(uint64_t iteration, const void* reduced, uint64_t count,
                                 uint64_t first = 0) const;
  // The same of elements of a rank's input.
  std::optional<Mismatch> verify_input_of(uint32_t rank, uint64_t iteration, const void* copied,
                                          uint64_t count, uint64_t first = 0) const;

 private:
  // Makes the numbers: of each rank, and of them all.
  struct Values {
    std::optional<Reduction> reduction;
    uint64_t world_size = 1;
    uint64_t max = 1;  // of a product: how many ranks have a factor that may be 2

    uint64_t of(uint64_t rank, uint64_t position) const;
    uint64_t reduced(uint64_t position) const;
  };

  Pattern(DataType dtype, Values values, uint32_t rank);
  // Two periods, so that one period begins anywhere in the first.
  template <typename ValueOf>
  std::vector<uint8_t> periods(ValueOf value_of) const;
  std::optional<Mismatch> compare(const std::vector<uint8_t>& right, uint64_t start,
                                  const void* data, uint64_t count) const;

  DataType dtype_;
  Values values_;
  std::vector<uint8_t> input_;
  std::vector<uint8_t> reduced_;  // empty where nothing is reduced
};

}  // namespace braid::bench
