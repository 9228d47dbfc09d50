// SPDX-License-Identifier: Apache-2.0
#include "braidctl/algorithm_options.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "arguments/complete_words.h"
#include "braidctl/command.h"
#include "braidctl/sweep.h"

namespace braid {
namespace {

std::vector<std::string_view> algorithm_names() {
  std::vector<std::string_view> names(algorithms().size());
  std::ranges::transform(algorithms(), names.begin(), &Algorithm::name);
  return names;
}

}  // namespace

void add_algorithm_options(CLI::App& command, std::string& algorithm, LinkCost& link,
                           AlgorithmOptions& options) {
  command.add_option("--algorithm", algorithm, "of the all-reduces")
      ->required()
      ->check(CLI::Validator(
          [](const std::string& name) {
            const auto cost = algorithm_cost(name, 1, {});
            return cost ? std::string() : cost.status().message();
          },
          choices_text(algorithm_names())));
  command.add_option("--alpha", link.latency_seconds, "seconds of latency of each message")
      ->required()
      ->check(is_not_negative());
  command.add_option("--beta", link.seconds_per_byte, "seconds to send a byte")
      ->required()
      ->check(is_not_negative());
  command.add_option("--gamma", link.reduce_seconds_per_byte, "seconds to add a byte")
      ->capture_default_str()
      ->check(is_not_negative());
  command.add_option("--group", options.group_workers, "hierarchical: workers of a rack")
      ->capture_default_str()
      ->check(is_integer(1, kSweepWorkersMax));
}

}  // namespace braid
