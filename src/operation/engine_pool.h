// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/polling.h"
#include "engine/engine.h"
#include "ipc/user_quotas.h"
#include "loop/door.h"
#include "net/transport.h"
#include "operation/operation_engines.h"
#include "operation/timeline_copier.h"

namespace braid {

// The I/O loops and their engines, as the control loop sees them. The first I/O loop is the control
// loop itself: its engine is called straight away, so a small operation wakes no other thread. Each
// further loop has a thread, one door into it and one door back. An operation goes to all loops
// (each runs its own units of it), an early one to the first alone, and is done when all of these
// are. Control loop only.
class EnginePool final : public OperationEngines {
 public:
  static constexpr size_t kDoorCapacity = 1 << 18;

  // `options.io_loop` and `timeline` are filled in for each loop. `timeline_events`: that each loop
  // keeps; 0: nothing is noted.
  static Result<std::unique_ptr<EnginePool>> create(Loop& control_loop, EngineOptions options,
                                                    size_t timeline_events = 0);
  EnginePool(const EnginePool&) = delete;
  EnginePool& operator=(const EnginePool&) = delete;
  ~EnginePool() override;  // stops the threads

  // What the transport is made with; then set_transport, then run_threads.
  std::vector<IoLoop> io_loops();
  void set_transport(Transport& transport);
  // How the loops wait; before run_threads.
  void set_polling(PollingMode mode);
  // The jobs for which they poll; nullptr: that is not for jobs to say.
  PollingJobs* polling_jobs() {
    return polling_ == PollingMode::Adaptive ? &polling_jobs_ : nullptr;
  }
  void run_threads();
  // The threads of the further loops have ended when it returns; call it after Transport::close.
  void stop_threads();

  static constexpr uint64_t kKeptStepBytes = 256 << 10;  // in which what is kept counts

  using OnOverrun = std::function<void(NodeId from, const Status& room)>;
  // `events`: told of the job's operations until abort_job. `on_overrun`: see Engine::Events.
  // `make_charge`: what an I/O loop keeps of what came early counts there, one of each loop.
  void begin_job(uint64_t job_key, OperationEvents& events, OnOverrun on_overrun,
                 const std::function<UserCharge()>& make_charge);
  // For operations that are started from now on: see Engine.
  void limit_job(uint64_t job_key, const JobShare& share);
  // Operations of a job that has begun.
  bool start(Operation operation) override;
  bool go(const OperationKey& key) override;
  // No event of this job comes from now on.
  void abort_job(uint64_t job_key);

  // What the control loop notes; nullptr: nothing.
  LoopTimeline* timeline() { return workers_.front()->timeline.get(); }
  // What all loops have noted; nullptr: nothing.
  TimelineCopier* timeline_copier() { return timeline_copier_.get(); }

  EngineCounters counters() const;
  // Processor time of all the daemon's threads, without what these loops have polled.
  uint64_t processor_ns() const;

 private:
  struct BeginJob {
    uint64_t job_key;
    CountKept count_kept;
  };
  struct LimitJob {
    uint64_t job_key;
    JobShare share;
  };
  struct Start {
    Operation operation;
  };
  struct Go {
    OperationKey key;
  };
  struct Abort {
    uint64_t job_key;
  };
  using Command = std::variant<BeginJob, LimitJob, Start, Go, Abort>;

  struct Event {
    OperationKey key;
    bool is_retired = false;
    NodeId overrun_from = 0;  // not 0: of the job
    std::shared_ptr<const Status> room{};
  };
  struct Worker {
    std::unique_ptr<Loop> own_loop;  // none: it is on the control loop
    Loop* loop = nullptr;
    std::unique_ptr<LoopTimeline> timeline;
    std::unique_ptr<Engine> engine;
    std::unique_ptr<Door<Command>> door;  // none: on the control loop
    std::thread thread;
  };
  struct Progress {
    size_t loops = 0;  // that it was given to
    size_t done = 0;
    size_t retired = 0;
  };

  struct Job {
    OperationEvents* events = nullptr;
    OnOverrun on_overrun;
    // Only operations that several loops run.
    std::unordered_map<OperationKey, Progress, OperationKeyHash> progress;
  };

  explicit EnginePool(Loop& control_loop);
  Status add_worker(Loop& control_loop, EngineOptions options, size_t timeline_events);
  Engine::Events events_of(Worker& worker);
  static void handle(Engine& engine, Command& command);
  static void give_unbounded(Worker& worker, Command command);
  void give_all_unbounded(const Command& command);
  Engine& first_engine() { return *workers_.front()->engine; }
  void on_event(const Event& event);

  PollingMode polling_ = PollingMode::Off;
  PollingJobs polling_jobs_;
  Door<Event> events_door_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<TimelineCopier> timeline_copier_;
  std::unordered_map<uint64_t, Job> jobs_;  // by key
};

}  // namespace braid
