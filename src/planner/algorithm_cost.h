// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/status.h"
#include "planner/cost_model.h"

namespace braid {

// How workers are connected: the α-β-γ model.
struct LinkCost {
  double latency_seconds = 0;          // α: of each message
  double seconds_per_byte = 0;         // β: of sending
  double reduce_seconds_per_byte = 0;  // γ: of adding
};

// Algorithms of all-reduce, whose T(M) = a + b·M follows from the link and the number of workers N.
// From Table 2 of "MG-WFBP: Merging Gradients Wisely for Efficient Communication in Distributed
// Deep Learning" (arXiv 1912.09268), and the hierarchy of rings:
//
//   ring                 a = 2(N−1)α       b = 2(N−1)/N·β + (N−1)/N·γ
//   recursive-doubling   a = α·log2 N      b = (β+γ)·log2 N
//   halving-doubling     a = 2α·log2 N     b = 2β − (2β+γ)/N + γ
//   binary-tree          a = 2α·log2 N     b = (2β+γ)·log2 N
//   double-binary-trees  a = 2α·log2 N     b = β+γ
//   hierarchical         a = 2(g−1)α' + 2(G−1)α
//                        b = 2(g−1)/g·β' + (g−1)/g·γ' + (2(G−1)/G·β + (G−1)/G·γ) / g
//
// The logarithm is the real one, as in the paper, also where N is no power of two; implementations
// then need an extra round that the model does not have. One worker costs nothing.
//
// hierarchical: groups of g workers, G = N/g groups. Reduce-scatter by a ring inside each group
// (α', β', γ'), all-reduce of each worker's M/g by a ring through the workers of the same place in
// all groups (g such rings side by side, each with a link of its own of α, β, γ), all-gather by the
// ring inside.
struct Algorithm {
  std::string_view name;
  std::string_view description;
};
std::span<const Algorithm> algorithms();

struct AlgorithmOptions {
  uint32_t group_workers = 8;      // hierarchical: g
  std::optional<LinkCost> inside;  // hierarchical: α', β', γ'; those of the link if not given
};

// Errors: a name that is none of algorithms() (the known ones are listed), no worker, costs that
// are negative or not finite, workers that do not fill groups.
Result<LinearCost> algorithm_cost(std::string_view algorithm, uint32_t workers,
                                  const LinkCost& link, const AlgorithmOptions& options = {});

}  // namespace braid
