// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "ipc/user_quotas.h"
#include "planning/plan_set.h"

namespace braid {

// Makes what a node keeps for the sets of one job, and counts it as the job's user's memory as long
// as it is there: what codecs lose, and what owners keep. Control loop only.
class SetMemory {
 public:
  SetMemory(std::shared_ptr<const Ring> ring, std::function<UserCharge()> make_charge)
      : ring_(std::move(ring)), make_charge_(std::move(make_charge)) {}

  Result<PlanSet::Kept> make(const PlanSet& set) const;

 private:
  // Tensors of so many elements are to travel with a codec.
  Result<std::shared_ptr<const CodedTensors>> code(const CodecSpec& spec, uint64_t elements) const;
  // Weights of so many elements are to be updated by their owners.
  Result<std::shared_ptr<ShardState>> shard(uint64_t elements, uint32_t slots,
                                            DataType dtype) const;
  // Nothing: more bytes than there can be.
  Result<UserCharge> charge(std::optional<uint64_t> bytes) const;

  const std::shared_ptr<const Ring> ring_;
  const std::function<UserCharge()> make_charge_;
};

}  // namespace braid
