// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "messages/control_messages.h"

namespace braid {

// Brings the nodes of each rack together, where every node says which rack it is in: racks and the
// nodes in them stay in the order in which they come. So a ring crosses each rack's border once
// each way.
void order_by_racks(std::vector<MemberNode>& nodes);

// How many nodes each rack has, where an all-reduce can go by racks: at least two racks of at least
// two nodes, all of the same size, each in one piece.
std::optional<uint32_t> nodes_per_rack(std::span<const MemberNode> nodes);

}  // namespace braid
