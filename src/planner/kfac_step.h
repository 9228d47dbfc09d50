// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "planner/placement.h"
#include "planner/workload.h"

namespace braid {

// What one step of training a model with K-FAC costs each rank without communication.
//
// As JSON: {"layers": [{"name": "conv1", "forward": s, "backward": s, "gradient_bytes": n,
// "a": {"dimension": d, "compute": s, "invert": s}, "g": {…}}, …]}, layers in the order of the
// forward pass, and optionally "model" and "element_bytes" (of factors; default 4). A layer without
// "a" and "g" has no factors: K-FAC leaves its gradient as it is.
struct KfacStep {
  static constexpr size_t kLayersMax = PlacedItem::kItemsMax / 2;
  static constexpr uint64_t kDimensionMax = 1'000'000;

  struct Factor {
    uint64_t dimension = 0;
    double compute_seconds = 0;  // of one batch
    double invert_seconds = 0;
    bool operator==(const Factor&) const = default;
  };
  struct Layer {
    std::string name;
    double forward_seconds = 0;
    double backward_seconds = 0;
    uint64_t gradient_bytes = 0;
    std::optional<Factor> a = {};  // of its inputs; made before its part of the forward pass
    std::optional<Factor> g = {};  // of its outputs' gradients; made after its part of backward
    bool operator==(const Layer&) const = default;
  };

  std::string model;
  std::vector<Layer> layers;
  uint64_t element_bytes = 4;

  // On the wire: the upper triangle with the diagonal, as a factor is symmetric.
  uint64_t triangle_bytes(const Factor& factor) const {
    return factor.dimension * (factor.dimension + 1) / 2 * element_bytes;
  }
  uint64_t square_bytes(const Factor& factor) const {
    return factor.dimension * factor.dimension * element_bytes;
  }
  double passes_seconds() const;  // forward and backward
  double factors_seconds() const;
  bool operator==(const KfacStep&) const = default;
};

// The tensors of a step, in the order in which they are made; seconds count from the step's
// beginning. A rank's device does one thing at a time.
struct KfacStreams {
  enum Kind : uint8_t { FactorsA, FactorsG, Gradients };
  static constexpr size_t kKinds = 3;

  std::array<Workload, kKinds> streams;
  double passes_end_seconds = 0;  // factors and gradients are all there
};
KfacStreams streams_of(const KfacStep& step);

// The inverses: of the factors A in the order of the forward pass, then of G in that order.
std::vector<PlacedItem> inverses_of(const KfacStep& step);

// Errors begin with `file` and name the entry: "k.json: layers[3].a.dimension: 0 is too small; …".
// Not accepted: negative times, no layer or more than kLayersMax, no factor at all, "a" without
// "g", names that are empty or stand twice, a key twice in one object, unknown keys. Keys that
// begin with "_" are passed over.
Result<KfacStep> parse_kfac_step(std::string_view text, std::string_view file);
Result<KfacStep> load_kfac_step(const std::string& path);

}  // namespace braid
