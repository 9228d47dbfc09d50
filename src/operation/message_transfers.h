// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "operation/job_on_node.h"

namespace braid {

// Makes the engine's operation that moves one message: an exchange of two nodes, the sender's and
// the receiver's, in which one gives the other bytes; or of two ranks of one node. Control loop
// only.
class MessageTransfers {
 public:
  // `job` outlives it. `memory` keeps the inputs and the result mapped.
  MessageTransfers(const JobOnNode& job, std::shared_ptr<JobMemory> memory)
      : job_(job), memory_(std::move(memory)) {}

  Operation within_node(const OperationKey& key, uint64_t bytes, const uint8_t* input,
                        uint8_t* result) const;
  // To, and from, the node at this place of the job's ring.
  Operation to(uint32_t place, const OperationKey& key, uint64_t bytes, const uint8_t* input);
  Operation from(uint32_t place, const OperationKey& key, uint64_t bytes, uint8_t* result);

 private:
  const std::shared_ptr<const Ring>& ring_of(uint32_t sender, uint32_t receiver);
  Operation made(const OperationKey& key, std::shared_ptr<const Ring> ring,
                 std::shared_ptr<const Exchange> exchange) const;

  const JobOnNode& job_;
  const std::shared_ptr<JobMemory> memory_;
  // Rings of two nodes, by the other one's place.
  std::unordered_map<uint32_t, std::shared_ptr<const Ring>> to_;
  std::unordered_map<uint32_t, std::shared_ptr<const Ring>> from_;
};

}  // namespace braid
