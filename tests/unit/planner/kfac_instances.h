// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "planner/kfac_simulator.h"
#include "planner/kfac_step.h"
#include "tests/unit/planner/instances.h"

namespace braid {

// Two layers. The passes, with the factors made in them:
//   0 A of first 1, forward 2, A of second 3, forward 4, backward of second 5, its G 6,
//   backward of first 8, its G 9
// Factors have 3, 1, 1, 1 bytes; gradients 2 and 1.
inline KfacStep tiny_kfac_step() {
  KfacStep step;
  step.element_bytes = 1;
  step.layers = {{"first", 1, 2, 2, KfacStep::Factor{2, 1, 4}, KfacStep::Factor{1, 1, 2}},
                 {"second", 1, 1, 1, KfacStep::Factor{1, 1, 2}, KfacStep::Factor{1, 1, 2}}};
  return step;
}

// Whole times from 1, so that a clock of whole numbers sees everything that happens.
inline KfacStep whole_kfac_step(Instances& instances, size_t layers_max) {
  KfacStep step;
  step.element_bytes = 1;
  const uint64_t limit = 1 + instances.below(8);
  const auto seconds = [&] { return static_cast<double>(1 + instances.below(limit)); };
  for (size_t count = 1 + instances.below(layers_max); count > 0; --count) {
    KfacStep::Layer layer{"layer" + std::to_string(count), seconds(), seconds(),
                          instances.below(6)};
    if (count == 1 || instances.below(3) > 0) {
      layer.a = KfacStep::Factor{1 + instances.below(4), seconds(), seconds()};
      layer.g = KfacStep::Factor{1 + instances.below(4), seconds(), seconds()};
    }
    step.layers.push_back(layer);
  }
  return step;
}

// Milliseconds and megabytes.
inline KfacStep real_kfac_step(Instances& instances, size_t layers_max) {
  KfacStep step;
  const double slowness = instances.real(0.1, 4);
  for (size_t count = 1 + instances.below(layers_max); count > 0; --count) {
    KfacStep::Layer layer{"layer" + std::to_string(count), instances.real(0, 1e-3),
                          instances.real(0, 2e-3), instances.below(4'000'000)};
    if (count == 1 || instances.below(3) > 0) {
      const auto factor = [&] {
        const auto dimension = 1 + instances.below(3000);
        const auto size = static_cast<double>(dimension) / 1000;
        return KfacStep::Factor{dimension, size * instances.real(0, 1e-3),
                                slowness * size * size * size * 1e-3};
      };
      layer.a = factor();
      layer.g = factor();
    }
    step.layers.push_back(layer);
  }
  return step;
}

}  // namespace braid
