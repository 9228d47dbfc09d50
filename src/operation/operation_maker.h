// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "operation/codec_gauge.h"
#include "operation/gathered_operation.h"

namespace braid {

// Makes the engine's operation from what the local ranks have submitted: kind, inputs, codec,
// owners and algorithm. Equal submissions give equal operations, and nothing else changes. `result`
// and `exchange` depend on the result's place, so the caller fills them in.
class OperationMaker {
 public:
  // `job` outlives it.
  OperationMaker(const JobOnNode& job, std::shared_ptr<JobMemory> memory)
      : job_(job), memory_(std::move(memory)) {}

  // Mismatch: the operation has elements of which this node keeps nothing.
  Status check(const GatheredOperation& submitted) const;
  // `submitted` is complete and was checked. `gauge` gets what the codec loses; nullptr: nothing is
  // measured.
  Operation make(const GatheredOperation& submitted,
                 const std::shared_ptr<CodecGauge>& gauge) const;

 private:
  void add_update(const GatheredOperation& submitted, Operation& operation) const;
  bool has_hop(const GatheredOperation& submitted) const;
  std::shared_ptr<Hop> hop_of(const GatheredOperation& submitted,
                              std::shared_ptr<CodecGauge> gauge) const;

  const JobOnNode& job_;
  const std::shared_ptr<JobMemory> memory_;
};

}  // namespace braid
