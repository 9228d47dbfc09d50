// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace braid::bench {

// Options that several commands of braid-bench have. What they set must outlive the parsing.

// Replaces a size such as 8, 1K or 25MB by its bytes (parse_bytes).
CLI::Validator as_bytes();
void add_sizes_option(CLI::App& command, std::vector<uint64_t>& sizes, const std::string& about);
// --iters and --warmup_iters, as nccl-tests has them.
void add_iterations_options(CLI::App& command, uint32_t& iterations, uint32_t& warmup);
// --timeout and --socket
void add_job_options(CLI::App& command, uint32_t& timeout_ms, std::string& socket_path);

}  // namespace braid::bench
