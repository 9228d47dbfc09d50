// SPDX-License-Identifier: Apache-2.0
#include "bench/command_options.h"

#include "arguments/complete_words.h"
#include "bench/size_range.h"

namespace braid::bench {
namespace {

constexpr uint32_t kTimeoutSecondsMax = 3600;

}  // namespace

CLI::Validator as_bytes() {
  return {[](std::string& text) {
            const auto bytes = parse_bytes(text);
            if (!bytes) return bytes.status().message();
            text = std::to_string(*bytes);
            return std::string();
          },
          ""};
}

void add_sizes_option(CLI::App& command, std::vector<uint64_t>& sizes, const std::string& about) {
  command.add_option("--sizes", sizes, about)->delimiter(',')->transform(as_bytes());
}

void add_iterations_options(CLI::App& command, uint32_t& iterations, uint32_t& warmup) {
  command.add_option("-n,--iters", iterations, "measured iterations per size")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1'000'000u));
  command.add_option("-w,--warmup_iters", warmup, "iterations before them")
      ->capture_default_str()
      ->check(CLI::Range(0u, 1'000'000u));
}

void add_job_options(CLI::App& command, uint32_t& timeout_ms, std::string& socket_path) {
  command
      .add_option_function<uint32_t>(
          "--timeout", [&timeout_ms](uint32_t seconds) { timeout_ms = seconds * 1000; },
          "seconds until an operation, or opening the job, has failed")
      ->default_str(std::to_string(timeout_ms / 1000))
      ->check(CLI::Range(1u, kTimeoutSecondsMax));
  command
      .add_option("--socket", socket_path,
                  "the daemon's socket (default: $BRAID_SOCKET, else /run/braid/braidd.sock)")
      ->type_name(kFileValue);
}

}  // namespace braid::bench
