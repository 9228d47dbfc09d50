// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "braidctl/command.h"
#include "braidctl/daemon_source.h"
#include "explain/node_facts.h"
#include "metrics/status.h"

namespace braid {

// The jobs on the daemon's node, as all of their nodes tell of them, in the JSON that NCCL's RAS
// answers with to "SET FORMAT json" and "STATUS" (src/ras/client_support.cc of NCCL): only those of
// its fields that are true of braid. docs/reference.md has the table.
struct RasTimes {
  std::time_t now = 0;
  double collection_seconds = 0;
};
std::string ras_json(const DaemonStatus& status, const std::vector<JobFacts>& jobs,
                     const RasTimes& times);

// Asks the daemon behind `socket`.
Result<CommandOutput> run_ras_status(const DaemonSource& daemon);

}  // namespace braid
