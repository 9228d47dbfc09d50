// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braidctl/command.h"
#include "braidctl/daemon_source.h"
#include "explain/explanation.h"

namespace braid {

struct JobsCommand {
  double seconds = 1;
  bool as_json = false;
};
CLI::App* add_jobs_command(CLI::App& app, JobsCommand& command);
// Asks the daemon behind `socket` about all jobs twice, `seconds` apart.
Result<CommandOutput> run_jobs(const DaemonSource& daemon, const JobsCommand& command);

struct TopCommand {
  double seconds = 2;
  uint32_t count = 0;  // so many tables; 0: without end
};
CLI::App* add_top_command(CLI::App& app, TopCommand& command);
// Writes one table after the other to standard output, each over the one before where that is a
// terminal.
Result<CommandOutput> run_top(const DaemonSource& daemon, const TopCommand& command);

// One job of the table.
struct JobLine {
  std::string job;
  size_t ranks = 0;
  size_t nodes = 0;
  uint64_t latest_step = 0;  // the latest that any node tells of
  // Why its steps take what they take; an error where there is nothing to explain.
  Result<Explanation> explanation = Status(StatusCode::NotFound, "");
};
// `plans` of the jobs, where a daemon knows them.
std::vector<JobLine> job_lines(const std::vector<JobFacts>& before,
                               const std::vector<JobFacts>& after, std::vector<LiveJob> plans);
std::string jobs_table(const std::vector<JobLine>& lines);

}  // namespace braid
