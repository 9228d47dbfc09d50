// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braidctl/command.h"
#include "planner/algorithm_cost.h"

namespace braid {

// `braidctl kfac`: what a step of K-FAC takes on numbers of ranks, by methods of dividing it.
struct KfacCommand {
  std::string step_path;
  std::string ranks_text;  // "4,8,…,256"
  std::vector<uint32_t> ranks;
  std::vector<std::string> methods;  // all of them if empty
  std::string algorithm;
  LinkCost link;
  AlgorithmOptions algorithm_options;
  bool as_json = false;
};

CLI::App* add_kfac_command(CLI::App& app, KfacCommand& command);
Result<CommandOutput> run_kfac(const KfacCommand& command);

}  // namespace braid
