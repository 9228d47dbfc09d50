// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "planner/cost_model.h"
#include "planner/fitted_cost.h"
#include "planner/trace.h"

// What braidctl's subcommands have in common.
namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace braid {

// The kind of values that are jobs of this node: shells offer them.
inline constexpr const char* kJobValue = "JOB";

// What a subcommand has to say: `text` goes to standard output, warnings to standard error.
struct CommandOutput {
  std::string text;
  std::vector<std::string> warnings;
  int exit_code = 0;  // 1: what it says is a finding
};

inline constexpr uint32_t kCommandStreamsMax = 64;
void add_streams_option(CLI::App& command, uint32_t& streams);

// --slowdown-of-two: see LinearCostModel.
void add_slowdown_option(CLI::App& command, double& slowdown_of_two);

// Option checks; their errors say what would be right.
CLI::Validator is_planner();
CLI::Validator is_number(double low, double high);
CLI::Validator is_integer(uint64_t low, uint64_t high);
CLI::Validator is_not_negative();  // a finite number
CLI::Validator as_size();          // "64KiB" becomes "65536"

// A trace that does not name its model is called like its file, in headings.
void name_after_file(Trace& trace, const std::string& path);

// INVALID_ARGUMENT, naming `source` and the tensor: codecs encode float32 alone.
Status check_codecs_fit(const Trace& trace, const std::string& source);

// "3 of 5 messages …": messages that lie outside the sizes that `cost` was measured at, nothing if
// none does. `what`: where the model comes from.
std::optional<std::string> extrapolation_warning(const FittedCost& cost,
                                                 std::span<const uint64_t> message_bytes,
                                                 const std::string& what);

}  // namespace braid
