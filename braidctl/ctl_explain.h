// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braidctl/command.h"
#include "explain/explanation.h"

namespace braid {

// Nodes that do not answer take up to three seconds.
inline constexpr uint32_t kFactsTimeoutMs = 6000;
// Between two looks at the daemons' numbers.
inline constexpr double kLookSecondsMin = 0.1;
inline constexpr double kLookSecondsMax = 60;

struct ExplainCommand {
  std::string job;  // as find_job takes it
  double seconds = 2;
  bool as_json = false;
};
CLI::App* add_explain_command(CLI::App& app, ExplainCommand& command);

// Asks the daemon behind `socket` twice, `seconds` apart.
Result<CommandOutput> run_explain(const std::string& socket, const ExplainCommand& command);

// What all nodes tell now of the job that `job` means.
Result<JobFacts> ask_about(const std::string& path, const std::string& job);

}  // namespace braid
