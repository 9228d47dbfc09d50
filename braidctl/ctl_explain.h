// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braidctl/command.h"
#include "braidctl/daemon_source.h"
#include "explain/explanation.h"

namespace braid {

// Nodes that do not answer take up to three seconds.
inline constexpr uint32_t kFactsTimeoutMs = 6000;
// Between two looks at the daemons' numbers.
inline constexpr double kLookSecondsMin = 0.1;
inline constexpr double kLookSecondsMax = 60;

struct ExplainCommand {
  std::string job;  // empty: the only one
  double seconds = 2;
  bool as_json = false;
};
CLI::App* add_explain_command(CLI::App& app, ExplainCommand& command);

// Asks the daemon behind `socket` twice, `seconds` apart.
Result<CommandOutput> run_explain(const DaemonSource& daemon, const ExplainCommand& command);

// What all nodes tell of the job of this name now, or of the only one where it is empty.
Result<JobFacts> ask_about(const DaemonSource& daemon, const std::string& job);
// The job of this name, or the only one where it is empty, among those that were asked about.
Result<JobFacts> find_job_facts(std::vector<JobFacts> jobs, const std::string& name);

}  // namespace braid
