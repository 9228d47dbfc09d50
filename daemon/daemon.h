// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "check/path_checks.h"
#include "config/config.h"
#include "control/control_plane.h"
#include "coordinator/knowledge_store.h"
#include "daemon/config_reload.h"
#include "daemon/daemon_metrics.h"
#include "daemon/daemon_page.h"
#include "daemon/personal_life.h"
#include "daemon/service_status.h"
#include "explain/findings_board.h"
#include "gpu/gpu_watch.h"
#include "ipc/client_server.h"
#include "job/job_manager.h"
#include "loop/held_lines.h"
#include "loop/signal.h"
#include "loop/work_thread.h"
#include "net/transport.h"
#include "operation/engine_pool.h"
#include "operation/job_board.h"
#include "telling/telling.h"

namespace braid {

// braidd: puts the parts together, in the order in which they need each other, and takes them apart
// again. No algorithms.
class Daemon {
 public:
  static Result<std::unique_ptr<Daemon>> create(DaemonInvocation invocation, DaemonConfig config);
  ~Daemon();

  // Serves until SIGTERM or SIGINT, then drains.
  void run();

 private:
  Daemon(DaemonInvocation invocation, DaemonConfig config, std::unique_ptr<Loop> loop);
  Status start();
  Status start_control_plane();
  Status start_transport();
  Status start_client_server();
  void start_telling();
  Status start_page();
  Status start_personal_life();
  DaemonPageSources page_sources();
  void reload();
  void stop();
  DaemonStatus loop_status(uid_t asker) const;  // add_numbers() makes it whole
  void publish_gauges();
  ServiceStatus::Numbers service_numbers() const;
  DaemonSources sources() const;

  const DaemonInvocation invocation_;
  DaemonConfig config_;
  SystemClock clock_;
  const uint64_t started_ns_;
  std::string node_name_;
  std::string node_address_;
  std::vector<std::string> rails_;
  std::shared_ptr<UserQuotas> quotas_;
  JobCounters job_counters_;
  JobBoard job_board_;
  TuningCounters tuning_counters_;
  GuardBoard guard_board_;
  FindingsBoard findings_board_;
  std::unique_ptr<GpuWatch> gpus_;             // nullptr: they are not watched
  std::unique_ptr<KnowledgeStore> knowledge_;  // before its writer, planner_
  DaemonGauges gauges_;

  std::unique_ptr<Loop> loop_;
  HeldLines held_lines_;
  std::vector<const Loop*> loops_;  // this one and the engines'
  std::unique_ptr<PersonalLife> personal_;
  std::unique_ptr<WorkThread> worker_;
  std::unique_ptr<WorkThread> planner_;  // another one: operations wait for memory
  std::unique_ptr<JobManager> jobs_;
  std::unique_ptr<ControlPlane> control_plane_;
  std::unique_ptr<EnginePool> engines_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<PathChecks> path_checks_;
  std::unique_ptr<ClientServer> client_server_;
  std::unique_ptr<Telling> telling_;
  std::unique_ptr<DaemonPage> page_;
  std::vector<std::unique_ptr<Signal>> signals_;
  std::unique_ptr<Timer> watchdog_;
  ServiceStatus service_status_;
  std::unique_ptr<Handle<uv_prepare_t>> before_sleep_;
  bool is_stopping_ = false;
};

}  // namespace braid
