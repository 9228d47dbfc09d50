// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "planner/placement.h"

namespace braid {

// What place() needs, in a file: {"items": [{"id": "layer1.A", "shape": [64, 64], "cost": seconds,
// "bytes": 8320}, …]}, and optionally "link": {"startup_seconds": s, "seconds_per_byte": s}.
// Without a link spreading takes no time.
struct PlacementInput {
  std::vector<PlacedItem> items;
  LinearCost link;
};

// Errors begin with `file` and name the entry: "p.json: items[3].cost: -1 is negative; …". Not
// accepted: what check_placed_items refuses, a key twice in one object, unknown keys. Keys that
// begin with "_" are passed over.
Result<PlacementInput> parse_placement_input(std::string_view text, std::string_view file);
Result<PlacementInput> load_placement_input(const std::string& path);

}  // namespace braid
