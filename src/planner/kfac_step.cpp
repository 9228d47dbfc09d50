// SPDX-License-Identifier: Apache-2.0
#include "planner/kfac_step.h"

#include <algorithm>

namespace braid {

double KfacStep::passes_seconds() const {
  double seconds = 0;
  for (const Layer& layer : layers) seconds += layer.forward_seconds + layer.backward_seconds;
  return seconds;
}

double KfacStep::factors_seconds() const {
  double seconds = 0;
  for (const Layer& layer : layers) {
    if (layer.a) seconds += layer.a->compute_seconds;
    if (layer.g) seconds += layer.g->compute_seconds;
  }
  return seconds;
}

KfacStreams streams_of(const KfacStep& step) {
  KfacStreams made;
  auto& [a, g, gradients] = made.streams;
  double now = 0;
  for (const KfacStep::Layer& layer : step.layers) {
    if (layer.a) {
      now += layer.a->compute_seconds;
      a.tensors.push_back({now, step.triangle_bytes(*layer.a)});
    }
    now += layer.forward_seconds;
  }
  for (auto layer = step.layers.rbegin(); layer != step.layers.rend(); ++layer) {
    now += layer->backward_seconds;
    if (layer->gradient_bytes > 0) gradients.tensors.push_back({now, layer->gradient_bytes});
    if (layer->g) {
      now += layer->g->compute_seconds;
      g.tensors.push_back({now, step.triangle_bytes(*layer->g)});
    }
  }
  made.passes_end_seconds = now;
  return made;
}

std::vector<PlacedItem> inverses_of(const KfacStep& step) {
  std::vector<PlacedItem> items;
  const auto add = [&](const KfacStep::Layer& layer, const std::optional<KfacStep::Factor>& factor,
                       const char* kind) {
    if (!factor) return;
    items.push_back({layer.name + kind,
                     {factor->dimension, factor->dimension},
                     factor->invert_seconds,
                     step.triangle_bytes(*factor)});
  };
  for (const KfacStep::Layer& layer : step.layers) add(layer, layer.a, ".A");
  for (const KfacStep::Layer& layer : step.layers) add(layer, layer.g, ".G");
  return items;
}

}  // namespace braid
