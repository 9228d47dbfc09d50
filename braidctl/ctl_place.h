// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braidctl/command.h"
#include "planner/placement_input.h"

namespace braid {

// `braidctl place`: which rank computes which item of a file.
struct PlaceCommand {
  std::string items_path;
  uint32_t ranks = 0;
  std::string rule = "best";
  bool as_json = false;
};

CLI::App* add_place_command(CLI::App& app, PlaceCommand& command);
Result<CommandOutput> run_place(const PlaceCommand& command);

// When an item's result is on the link.
struct ItemSpread {
  uint32_t item = 0;
  double start_seconds = 0;
  double end_seconds = 0;
};
// In the placement's order.
std::vector<ItemSpread> spreads_of(const PlacementInput& input, const Placement& placement);

}  // namespace braid
