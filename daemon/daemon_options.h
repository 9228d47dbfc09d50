// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/peer.h"
#include "base/polling.h"
#include "check/path_checks.h"
#include "config/config.h"
#include "daemon/daemon_page.h"
#include "engine/engine.h"
#include "gpu/gpu_watch.h"
#include "ipc/client_server.h"
#include "ipc/user_quotas.h"
#include "job/job_manager.h"
#include "metrics/families.h"
#include "net/transport.h"
#include "telling/job_questions.h"

namespace braid {

// What the configuration, and the machine where it leaves things open, say to each of the daemon's
// parts. What one part gets from another is the daemon's to fill in.

// Before there is a log: errors are told when the daemon starts.
LogOptions log_options(const DaemonConfig& config);
TellingOptions telling_options(const DaemonConfig& config, const GpuWatch* gpus);
JobManagerOptions job_manager_options(const DaemonConfig& config);
TuningOptions tuning_options(const DaemonConfig& config, size_t rails);
EngineOptions engine_options(const DaemonConfig& config);
TransportOptions transport_options(const DaemonConfig& config, std::vector<std::string> rails);
// `link_opened`: see PathChecks::Options.
PathChecks::Options path_check_options(const DaemonConfig& config,
                                       std::function<void()> link_opened);
// nullptr: GPUs are not watched.
std::unique_ptr<GpuWatch> watch_gpus(const DaemonConfig& config, std::vector<std::string> rails);
UserLimits user_limits(const DaemonConfig& config);
// Without the board that it writes to.
GuardOptions guard_options(const DaemonConfig& config);
bool is_encrypted(const DaemonConfig& config);
PollingMode polling_mode(const DaemonConfig& config);
// That transports are set up for.
uint32_t chunk_bytes_max(const DaemonConfig& config);
// Reads the token's file.
Result<DaemonPageOptions> page_options(const DaemonConfig& config, const std::string& node_name);
// Size of a job's result memory.
uint64_t result_bytes_max(const DaemonConfig& config);
// Where what was learned is kept; empty: nowhere.
std::string state_directory(const DaemonConfig& config);
// Where the timelines of jobs that failed go; empty: nowhere.
std::string timeline_directory(const DaemonConfig& config);
// `self`: as other nodes know this daemon.
ClientServerOptions client_server_options(const DaemonConfig& config, const std::string& node_name,
                                          const Peer& self, bool is_personal);
// What /metrics shows that stays the same as long as the daemon runs.
std::vector<MetricSample> constant_samples(const DaemonConfig& config);
// How many connections of hosts that are not known yet may be open.
size_t strangers_max();
// How many of the clients' descriptors may wait to be closed.
size_t descriptors_closing_max();

}  // namespace braid
