// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "codec/gradient_codec.h"

namespace braid {

// How an all-reduce travels with a codec: what is made of a node's own part, and what of a sum that
// several parts are in. Sums are encoded once at their owner, and nobody decodes anything else.
//
//   quantizers, casts   by the codec again; what is lost of a sum stays in the memory of the node
//                       that encodes it (Tang et al., "DoubleSqueeze", ICML 2019)
//   2bit                exact multiples of the threshold, in 4 bits up to 7 nodes, in 8 up to 127,
//                       else float32
//   topk, dgc           the elements of all parts, exact
//   sign-vote           the majority's sign
//   block-sparse, none  exact
//
// With full_every = k, steps k−1, 2k−1, … go as float32, and the memory stays as it is: the k-step
// correction of Yu et al. ("CD-SGD: Distributed Stochastic Gradient Descent with Compression and
// Delay Compensation", ICPP 2021).
struct CodedSum {
  std::shared_ptr<const GradientCodec> part;
  std::shared_ptr<const GradientCodec> sum;
  // A node adds its own part, too, as others decode it: the sum consists of signs, multiples of a
  // threshold, or the elements that each node has chosen. Else it adds it as it is.
  bool encodes_own_part = false;
  // Error memory for each element of a tensor, on each node: 0, or the part's. An element is
  // encoded once in a step by each node, as a part or as a sum, so one memory serves both.
  uint32_t memory_floats = 0;
  bool sum_has_memory = false;
  std::shared_ptr<const GradientCodec> full;  // of each k-th step; nullptr: there is none

  // What the step's parts and sums are encoded with.
  CodedSum of_step(uint64_t step) const;
};

// What an update's all-reduce does: parts travel as those of `parts` (nullptr: as they are), and
// what the owner sends are weights, as they are or rounded to bfloat16. Among more than 32 nodes,
// around the ring, sums of some nodes' parts travel as weights do.
CodedSum with_weights(const CodedSum* parts, bool is_rounded);

// `nodes`: that have parts. `divisor`: of an average, the number of ranks; parts are divided by it
// before they are encoded, and so is a threshold. INVALID_ARGUMENT: the spec is none, or its
// threshold becomes too small.
Result<CodedSum> make_coded_sum(const CodecSpec& spec, uint32_t nodes, uint32_t divisor);

}  // namespace braid
