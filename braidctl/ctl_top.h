// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "braidctl/ctl_jobs.h"
#include "braidctl/daemon_source.h"

namespace braid {

// Shows the jobs again and again. On a terminal they are on its alternate screen, and keys choose;
// else one table follows the other. Ends with an error when the daemon does not answer any more.
Result<CommandOutput> run_top(const DaemonSource& daemon, const TopCommand& command);

}  // namespace braid
