// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/operation.h"
#include "messages/control_messages.h"
#include "proto/control_generated.h"

namespace braid {

// The nodes and ranks of a job in one epoch and their ring order, as its coordinator has fixed
// them, seen from one node.
struct Membership {
  std::string name;
  uint64_t key = 0;
  uint32_t epoch = 0;
  uint32_t weight = 1;            // 1 to kJobWeightMax
  std::vector<MemberNode> nodes;  // in ring order
  std::shared_ptr<const Ring> ring;
  std::vector<uint32_t> local_ranks;  // ascending
  uint32_t sample_every_steps = 0;    // what codecs lose is measured; 0: never
  bool is_meshed = false;             // this node sends to all others, whatever the routes need

  std::vector<uint32_t> messages_to;  // places whose ranks get messages of single ranks here

  // The nodes that this one sends data to: its successor and those of its routes; with direct
  // operations, all others.
  std::vector<const MemberNode*> targets() const;
  // Those, and the ones that send data to this one.
  std::vector<const MemberNode*> neighbours() const;
};

// Checks a JobStart and works out this node's place. Protocol: ranks or nodes missing or twice,
// this node not among the members, no racks to go by. `unit_bytes`: as this node is configured.
Result<Membership> parse_job_start(const proto::JobStart& start, NodeId self,
                                   uint64_t unit_bytes = 0);

}  // namespace braid
