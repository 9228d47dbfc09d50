// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "planner/algorithm_cost.h"

namespace CLI {
class App;
}  // namespace CLI

namespace braid {

// --algorithm, --alpha, --beta, --gamma and --group: what algorithm_cost() takes.
void add_algorithm_options(CLI::App& command, std::string& algorithm, LinkCost& link,
                           AlgorithmOptions& options);

}  // namespace braid
