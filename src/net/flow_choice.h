// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace braid {

// A flow of a link as the choice sees it.
struct FlowLoad {
  bool is_open = false;
  bool has_room = false;
  uint64_t unacknowledged_bytes = 0;
  double bytes_per_second = 0;  // 0: not known
};

inline constexpr size_t kNoFlow = std::numeric_limits<size_t>::max();

// The median rate of the open flows whose rate is known; 0 if there are none.
double median_rate(std::span<const FlowLoad> flows);

// Gives all flows the median rate but those that clearly have another one: a small difference is
// chance, and who follows chance piles chunks on one flow. No known rate: 1 for all.
void even_out(std::span<FlowLoad> flows);

// The flow that the next chunk goes to: of those with room, where it would arrive first; of equals,
// the first one from `first` on. kNoFlow if none has room. Also kNoFlow if the best flow
// with room would deliver the chunk only after the others had emptied the queue, and a full flow
// would deliver it sooner: the chunk waits for that flow, so a slow flow holds nothing when all
// others are done (the idea of "earliest
// completion first" for multi-path TCP: Lim et al., CoNEXT 2017, section 4). Every open flow has a
// rate; `queued_bytes` holds the chunk.
size_t choose_flow(std::span<const FlowLoad> flows, uint64_t chunk_bytes, uint64_t queued_bytes,
                   size_t first);

}  // namespace braid
