// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/peer.h"
#include "engine/operation_input.h"
#include "engine/route.h"
#include "engine/urgency.h"
#include "proto/types.h"

namespace braid {

// (job, tensor, step) names an operation on all nodes.
struct OperationKey {
  uint64_t job_key = 0;
  uint64_t tensor = 0;  // hash of the name
  uint64_t step = 0;
  bool operator==(const OperationKey&) const = default;
};

struct OperationKeyHash {
  size_t operator()(const OperationKey& key) const;
};

class Contribution;
class Exchange;
class Hop;
class OwnerStep;
struct FixedOwners;

// The memory that a job's operations live in on this node; mapped as long as anybody holds it.
struct JobMemory {
  virtual ~JobMemory() = default;
};

// The ring of a job as one node sees it. Blocks of an all-gather or reduce-scatter lie in ring
// order: node 0's ranks (ascending), then node 1's, …
struct Ring {
  uint32_t nodes = 1;
  uint32_t self = 0;                          // this node's place
  uint32_t world_size = 1;                    // ranks of all nodes
  std::vector<uint32_t> ranks_of_node;        // how many, by place in the ring
  std::vector<uint32_t> block_of_rank;        // rank → its block
  std::vector<NodeId> members;                // by place in the ring
  std::shared_ptr<const BasicRoutes> routes;  // of its nodes, seen from this one
  uint64_t unit_bytes = 0;  // what is larger is cut, unless settings say otherwise
  // All-reduces of up to so many bytes are direct; 0: none, and links lead to the successor only.
  uint64_t direct_bytes = 0;
  // Larger ones of up to so many bytes go by `halving`. nullptr: none, and no links are there for
  // it.
  uint64_t halving_bytes = 0;
  std::shared_ptr<const Route> halving;
  // Larger ones of up to so many bytes go by `two_hops`, before `halving`; nullptr: as above.
  uint64_t two_hops_bytes = 0;
  std::shared_ptr<const Route> two_hops;
  // All larger ones go by this one, where the nodes' racks allow it; nullptr: around the ring.
  std::shared_ptr<const Route> hierarchical;
};

// Which halves of an all-reduce with fixed owners an operation has. ReduceScatter: the sums stay
// with their owners. Gather: nothing is added, the owners' bytes go out.
enum class Halves : uint8_t { Both = 0, ReduceScatter, Gather };

// One collective as this node's engine runs it: all local ranks have submitted it, and the result
// has a place.
struct Operation {
  OperationKey key;
  Collective collective = Collective::AllReduce;
  DataType dtype = DataType::Float32;
  Reduction reduction = Reduction::Sum;
  uint64_t count = 0;             // elements, as in braid_collective
  uint32_t root_node = 0;         // broadcast: place in the ring
  uint32_t root_local_input = 0;  // broadcast on the root's node: index in `inputs`
  // A small all-reduce: every node sends its part to every other one, which takes one hop instead
  // of 2(n − 1).
  bool is_direct = false;
  // An all-reduce that takes this route and not the one around the ring, on several nodes; the ring
  // keeps it.
  const Route* route = nullptr;
  // An all-reduce of elements whose owners are fixed, the same on all nodes. Its route has
  // one_owner_each(), and it is not early. nullptr: who owns what follows from the cut.
  std::shared_ptr<const FixedOwners> fixed_owners;
  Halves halves = Halves::Both;
  // How it is cut, the same on all nodes; 0: as EngineOptions says.
  uint64_t unit_bytes = 0;
  uint32_t chunk_bytes = 0;
  // Not 0: the operation is early. Parts are sent before it is known that their receivers are
  // ready, and carry this hash of what all ranks must agree on; who has all parts needs no
  // readiness. All direct ones are early, and such as go by two hops and are within early_limits.h.
  uint32_t signature = 0;
  uint64_t urgency = kMostUrgent;  // the same on all nodes
  std::shared_ptr<const Ring> ring;
  std::shared_ptr<JobMemory> memory;  // keeps `inputs` and `result` mapped
  // One per local rank, ascending by rank; aligned to the element; never written. Only an
  // all-reduce's may lie in several pieces.
  std::vector<OperationInput> inputs;
  uint8_t* result = nullptr;  // result_bytes() of it
  // Gather, scatter, all-to-all: what goes where, in place of `count`, `inputs` and `result`.
  std::shared_ptr<const Exchange> exchange;
  // What may differ from operation to operation, the same on all nodes; each lives as long as
  // anybody holds it.
  std::shared_ptr<Contribution> contribution;  // nullptr: `inputs`
  std::shared_ptr<Hop> hop;                    // nullptr: bytes travel as they are
  std::shared_ptr<OwnerStep> owner_step;       // nullptr: the average's division, or none
};

inline bool is_early(const Operation& operation) { return operation.signature != 0; }

// The route that the operation takes; its ring has routes.
const Route& route_of(const Operation& operation);

// Bytes of one rank's input and of the result on a node, of collectives that are no exchange. For
// reduce-scatter the result has the full input's layout (blocks in ring order); only the blocks of
// local ranks are final.
uint64_t input_bytes(Collective collective, DataType dtype, uint64_t count, uint32_t world_size);
uint64_t result_bytes(Collective collective, DataType dtype, uint64_t count, uint32_t world_size);

}  // namespace braid
