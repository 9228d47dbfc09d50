// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include "bench/collective_bench.h"

namespace braid::bench {

// Adds a command for each collective. What is asked for stands in `options` after the parsing.
void add_collective_commands(CLI::App& app, CollectiveOptions& options);

}  // namespace braid::bench
