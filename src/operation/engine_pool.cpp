// SPDX-License-Identifier: Apache-2.0
#include "operation/engine_pool.h"

#include <algorithm>

#include <fmt/format.h>
#include <pthread.h>
#include <time.h>

namespace braid {

EnginePool::EnginePool(Loop& control_loop)
    : events_door_(control_loop, kDoorCapacity, [this](Event& event) { on_event(event); }) {}

Result<std::unique_ptr<EnginePool>> EnginePool::create(Loop& control_loop, EngineOptions options,
                                                       size_t timeline_events) {
  std::unique_ptr<EnginePool> pool(new EnginePool(control_loop));
  for (uint32_t i = 0; i < options.io_loops; ++i) {
    options.io_loop = i;
    BRAID_RETURN_IF_ERROR(pool->add_worker(control_loop, options, timeline_events));
  }
  if (timeline_events == 0) return pool;
  std::vector<TimelineCopier::Source> sources;
  for (const auto& worker : pool->workers_)
    sources.push_back({worker->loop, worker->timeline.get()});
  pool->timeline_copier_ = std::make_unique<TimelineCopier>(control_loop, sources);
  return pool;
}

Status EnginePool::add_worker(Loop& control_loop, EngineOptions options, size_t timeline_events) {
  auto worker = std::make_unique<Worker>();
  worker->loop = &control_loop;
  if (options.io_loop != 0) {
    auto loop = Loop::create(fmt::format("io-{}", options.io_loop));
    if (!loop) return loop.status();
    worker->own_loop = std::move(loop).value();
    worker->loop = worker->own_loop.get();
    worker->door = std::make_unique<Door<Command>>(
        *worker->loop, kDoorCapacity,
        [self = worker.get()](Command& command) { handle(*self->engine, command); });
  }
  if (timeline_events != 0) worker->timeline = std::make_unique<LoopTimeline>(timeline_events);
  options.timeline = worker->timeline.get();
  worker->engine = Engine::create(*worker->loop, options, events_of(*worker));
  workers_.push_back(std::move(worker));
  return Status::ok();
}

Engine::Events EnginePool::events_of(Worker& worker) {
  Engine::Events events;
  if (worker.door == nullptr) {
    events.on_done = [this](const OperationKey& key) { on_event({key, false}); };
    events.on_retired = [this](const OperationKey& key) { on_event({key, true}); };
    events.drain_door = [] {};
  } else {
    // Every loop reports an operation twice; the number of operations is bounded by the clients'
    // rings.
    events.on_done = [this](const OperationKey& key) { events_door_.send_unbounded({key, false}); };
    events.on_retired = [this](const OperationKey& key) {
      events_door_.send_unbounded({key, true});
    };
    events.drain_door = [&worker] { worker.door->drain(); };
  }
  // By the door from the control loop as well: the engine is in the middle of a chunk.
  events.on_overrun = [this](uint64_t job_key, NodeId from, const Status& room) {
    events_door_.send_unbounded(
        {{job_key, 0, 0}, false, from, std::make_shared<const Status>(room)});
  };
  return events;
}

void EnginePool::handle(Engine& engine, Command& command) {
  if (auto* start = std::get_if<Start>(&command)) {
    engine.start(std::move(start->operation));
  } else if (auto* go = std::get_if<Go>(&command)) {
    engine.go(go->key);
  } else if (auto* begin = std::get_if<BeginJob>(&command)) {
    engine.begin_job(begin->job_key, std::move(begin->count_kept));
  } else if (const auto* limit = std::get_if<LimitJob>(&command)) {
    engine.limit_job(limit->job_key, limit->share);
  } else {
    engine.abort_job(std::get<Abort>(command).job_key);
  }
}

void EnginePool::give_unbounded(Worker& worker, Command command) {
  if (worker.door != nullptr) {
    worker.door->send_unbounded(std::move(command));
  } else {
    handle(*worker.engine, command);
  }
}

void EnginePool::give_all_unbounded(const Command& command) {
  for (auto& worker : workers_) give_unbounded(*worker, command);
}

EnginePool::~EnginePool() {
  stop_threads();
  set_polling(PollingMode::Off);  // the control loop may run on
}

void EnginePool::set_polling(PollingMode mode) {
  polling_ = mode;
  for (const auto& worker : workers_) worker->loop->polling().set_mode(mode, polling_jobs());
}

std::vector<IoLoop> EnginePool::io_loops() {
  std::vector<IoLoop> loops;
  for (auto& worker : workers_)
    loops.push_back({worker->loop, worker->engine.get(), worker->timeline.get()});
  return loops;
}

void EnginePool::set_transport(Transport& transport) {
  for (size_t i = 0; i < workers_.size(); ++i) workers_[i]->engine->set_links(transport.links(i));
}

void EnginePool::run_threads() {
  for (auto& worker : workers_) {
    if (worker->own_loop == nullptr) continue;
    worker->thread = std::thread([loop = worker->loop] {
      pthread_setname_np(pthread_self(), loop->name().c_str());
      loop->run();
    });
  }
}

void EnginePool::stop_threads() {
  for (auto& worker : workers_) {
    if (!worker->thread.joinable()) continue;
    worker->loop->stop();
    worker->thread.join();
  }
}

void EnginePool::begin_job(uint64_t job_key, OperationEvents& events, OnOverrun on_overrun,
                           const std::function<UserCharge()>& make_charge) {
  jobs_[job_key] = {&events, std::move(on_overrun), {}};
  for (auto& worker : workers_) {
    auto charge = std::make_shared<UserCharge>(make_charge());
    give_unbounded(*worker, BeginJob{job_key, [charge](uint64_t bytes) {
                                       return charge->set_in_steps(bytes, kKeptStepBytes);
                                     }});
  }
}

void EnginePool::limit_job(uint64_t job_key, const JobShare& share) {
  give_all_unbounded(LimitJob{job_key, share});
}

bool EnginePool::start(Operation operation) {
  const size_t loops = is_early(operation) ? 1 : workers_.size();
  if (loops > 1) jobs_.at(operation.key.job_key).progress[operation.key].loops = loops;
  for (size_t i = 1; i < loops; ++i) {
    if (!workers_[i]->door->send(Start{operation})) return false;
  }
  first_engine().start(std::move(operation));
  return true;
}

bool EnginePool::go(const OperationKey& key) {
  for (size_t i = 1; i < workers_.size(); ++i) {
    if (!workers_[i]->door->send(Go{key})) return false;
  }
  first_engine().go(key);
  return true;
}

void EnginePool::abort_job(uint64_t job_key) {
  jobs_.erase(job_key);
  give_all_unbounded(Abort{job_key});
}

void EnginePool::on_event(const Event& event) {
  const auto position = jobs_.find(event.key.job_key);
  if (position == jobs_.end()) return;  // aborted while the event was on its way
  Job& job = position->second;
  // Who is told may abort the job, and it is gone then.
  if (event.overrun_from != 0)
    return std::function(job.on_overrun)(event.overrun_from, *event.room);
  if (const auto progress = job.progress.find(event.key); progress != job.progress.end()) {
    Progress& so_far = progress->second;
    if (++(event.is_retired ? so_far.retired : so_far.done) < so_far.loops) return;
    if (event.is_retired) job.progress.erase(progress);
  }
  if (event.is_retired) {
    job.events->on_retired(event.key);
  } else {
    job.events->on_done(event.key);
  }
}

uint64_t EnginePool::processor_ns() const {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  uint64_t ns =
      static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(used.tv_nsec);
  for (const auto& worker : workers_)
    ns -= std::min(ns, worker->loop->polling_counters().polled_ns);
  return ns;
}

EngineCounters EnginePool::counters() const {
  EngineCounters sum;
  for (const auto& worker : workers_) {
    const EngineCounters counters = worker->engine->counters();
    sum.units_done += counters.units_done;
    sum.bytes_reduced += counters.bytes_reduced;
    sum.bytes_copied += counters.bytes_copied;
    sum.bytes_carried += counters.bytes_carried;
    sum.chunks_duplicate += counters.chunks_duplicate;
    sum.chunks_stale += counters.chunks_stale;
    sum.chunks_malformed += counters.chunks_malformed;
  }
  return sum;
}

}  // namespace braid
