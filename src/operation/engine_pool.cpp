// SPDX-License-Identifier: Apache-2.0
#include "operation/engine_pool.h"

#include <fmt/format.h>
#include <pthread.h>

namespace braid {

EnginePool::EnginePool(Loop& control_loop)
    : events_door_(control_loop, kDoorCapacity, [this](Event& event) { on_event(event); }) {}

Result<std::unique_ptr<EnginePool>> EnginePool::create(Loop& control_loop, EngineOptions options) {
  std::unique_ptr<EnginePool> pool(new EnginePool(control_loop));
  for (uint32_t i = 0; i < options.io_loops; ++i) {
    auto worker = std::make_unique<Worker>();
    auto loop = Loop::create(fmt::format("io-{}", i));
    if (!loop) return loop.status();
    worker->loop = std::move(loop).value();

    // Every loop reports an operation twice; the number of operations is bounded by the clients'
    // rings.
    Door<Event>& events_door = pool->events_door_;
    Worker* self = worker.get();
    options.io_loop = i;
    worker->engine = Engine::create(*worker->loop, options,
                                    {[&events_door](const OperationKey& key) {
                                       events_door.send_unbounded({key, false});
                                     },
                                     [&events_door](const OperationKey& key) {
                                       events_door.send_unbounded({key, true});
                                     },
                                     [self] { self->door->drain(); },
                                     [&events_door](uint64_t job_key, NodeId from) {
                                       events_door.send_unbounded({{job_key, 0, 0}, false, from});
                                     }});
    worker->door =
        std::make_unique<Door<Command>>(*worker->loop, kDoorCapacity, [self](Command& command) {
          if (auto* start = std::get_if<Start>(&command)) {
            self->engine->start(std::move(start->operation));
          } else if (auto* go = std::get_if<Go>(&command)) {
            self->engine->go(go->key);
          } else if (const auto* begin = std::get_if<BeginJob>(&command)) {
            self->engine->begin_job(begin->job_key);
          } else if (const auto* limit = std::get_if<LimitJob>(&command)) {
            self->engine->limit_job(limit->job_key, limit->share);
          } else {
            self->engine->abort_job(std::get<Abort>(command).job_key);
          }
        });
    pool->workers_.push_back(std::move(worker));
  }
  return pool;
}

EnginePool::~EnginePool() { stop_threads(); }

std::vector<IoLoop> EnginePool::io_loops() {
  std::vector<IoLoop> loops;
  for (auto& worker : workers_) loops.push_back({worker->loop.get(), worker->engine.get()});
  return loops;
}

void EnginePool::set_transport(Transport& transport) {
  for (size_t i = 0; i < workers_.size(); ++i) workers_[i]->engine->set_links(transport.links(i));
}

void EnginePool::run_threads() {
  for (auto& worker : workers_) {
    worker->thread = std::thread([loop = worker->loop.get()] {
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

void EnginePool::begin_job(uint64_t job_key, OperationEvents& events,
                           std::function<void(NodeId)> on_overrun) {
  jobs_[job_key] = {&events, std::move(on_overrun), {}};
  for (auto& worker : workers_) worker->door->send_unbounded(BeginJob{job_key});
}

void EnginePool::limit_job(uint64_t job_key, const JobShare& share) {
  for (auto& worker : workers_) worker->door->send_unbounded(LimitJob{job_key, share});
}

bool EnginePool::start(const Operation& operation) {
  jobs_.at(operation.key.job_key).progress[operation.key] = {};
  return send(Start{operation});
}

bool EnginePool::go(const OperationKey& key) { return send(Go{key}); }

bool EnginePool::send(const Command& command) {
  for (auto& worker : workers_) {
    if (!worker->door->send(command)) return false;
  }
  return true;
}

void EnginePool::abort_job(uint64_t job_key) {
  jobs_.erase(job_key);
  for (auto& worker : workers_) worker->door->send_unbounded(Abort{job_key});
}

void EnginePool::on_event(const Event& event) {
  const auto position = jobs_.find(event.key.job_key);
  if (position == jobs_.end()) return;  // aborted while the event was on its way
  Job& job = position->second;
  // Who is told may abort the job, and it is gone then.
  if (event.overrun_from != 0) return std::function(job.on_overrun)(event.overrun_from);
  const auto progress = job.progress.find(event.key);
  if (progress == job.progress.end()) return;
  if (event.is_retired) {
    if (++progress->second.retired < workers_.size()) return;
    job.progress.erase(progress);
    job.events->on_retired(event.key);
  } else {
    if (++progress->second.done < workers_.size()) return;
    job.events->on_done(event.key);
  }
}

EngineCounters EnginePool::counters() const {
  EngineCounters sum;
  for (const auto& worker : workers_) {
    const EngineCounters counters = worker->engine->counters();
    sum.units_done += counters.units_done;
    sum.bytes_reduced += counters.bytes_reduced;
    sum.bytes_carried += counters.bytes_carried;
    sum.chunks_duplicate += counters.chunks_duplicate;
    sum.chunks_stale += counters.chunks_stale;
    sum.chunks_malformed += counters.chunks_malformed;
  }
  return sum;
}

}  // namespace braid
