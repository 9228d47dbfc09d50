// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "proto/types.h"

namespace braid {

// What one step of training a model costs without communication: for each gradient its size and how
// long backward takes to make it. The unit of exchange between recorders, planners and simulators.
//
// As JSON: {"names": [...], "numel": [elements], "tb": [seconds]}, index 0 = first layer, and
// optionally "model", "dtype" (one for all, or one per tensor; default float32), "forward_seconds"
// (default: half of the backward pass) and "samples", what was measured of single ranks and steps:
// [{"rank": 0, "step": 3, "forward_seconds": s, "tb": [seconds]}, …].
struct Trace {
  static constexpr size_t kTensorsMax = 200'000;

  struct Tensor {
    std::string name;
    uint64_t count = 0;  // elements
    DataType dtype = DataType::Float32;
    double backward_seconds =
        0;  // from the moment the gradient before it (of the next layer) was made
    uint64_t bytes() const { return count * element_bytes(dtype); }
    bool operator==(const Tensor&) const = default;
  };
  struct Sample {
    uint32_t rank = 0;
    uint64_t step = 0;
    double forward_seconds = 0;
    std::vector<double> backward_seconds;  // one per tensor
    bool operator==(const Sample&) const = default;
  };

  std::string model;
  std::vector<Tensor> tensors;  // [0] is the first layer's: backward makes the last one first
  double forward_seconds = 0;
  std::vector<Sample> samples;

  double backward_seconds() const;  // of all tensors
  bool operator==(const Trace&) const = default;
};

// Reads what `text` holds. Errors begin with `file` and name the entry: "t.json: tb[3]: -1 is
// negative; …". Not accepted: NaN, infinite or negative times, sizes that are no positive integers
// or whose sum of bytes does not fit 63 bits, names that are empty or stand twice, lists of
// different lengths, no tensor, more than kTensorsMax, a key twice in one object, unknown keys.
// "comm_measured", "nworkers" and "note", which published traces have, and keys that begin with "_"
// are passed over.
Result<Trace> parse_trace(std::string_view text, std::string_view file);
Result<Trace> load_trace(const std::string& path);
std::string to_json(const Trace& trace);

}  // namespace braid
