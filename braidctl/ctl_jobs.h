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
// One job of the table.
struct JobLine {
  std::string job;
  size_t ranks = 0;
  size_t nodes = 0;
  uint64_t latest_step = 0;  // the latest that any node tells of
  // Why its steps take what they take; an error where there is nothing to explain.
  Result<Explanation> explanation = Status(StatusCode::NotFound, "");
};
// What all nodes tell of the jobs on the daemon's node, at one time.
struct JobsLook {
  std::vector<JobFacts> jobs;  // by name
  uint32_t hidden = 0;         // jobs of other users
};
Result<JobsLook> look_at_jobs(const DaemonSource& daemon);
// Asks for the jobs' plans.
Result<std::vector<JobLine>> compare_looks(const DaemonSource& daemon, const JobsLook& before,
                                           const JobsLook& after);
// `plans` of the jobs, where a daemon knows them.
std::vector<JobLine> job_lines(const std::vector<JobFacts>& before,
                               const std::vector<JobFacts>& after, std::vector<LiveJob> plans);
std::string jobs_table(const std::vector<JobLine>& lines);

}  // namespace braid
