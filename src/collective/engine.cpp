// SPDX-License-Identifier: Apache-2.0
//
// clang-format off
// The words, for the whole room:
//   unit     the part of an operation that is scheduled on its own and belongs to one I/O loop, the
//            same on all nodes
//   segment  the part of a unit that one node of the ring owns; segment s is node s's
//   chunk    the part of a segment that travels in one message
//   hop      one node's treatment of a chunk: add or store it, pass it on to the successor
// clang-format on
//
// Reduce-scatter: segment s starts at node s + 1, whose own contribution it is there, and goes s +
// 1 → s + 2 → … → s; each hop adds its node's contribution. At the owner the sum is complete.
// All-gather: it goes on s → s + 1 → … → s - 1; each hop stores it. An all-reduce is both, one
// after the other, chunk by chunk: no node waits for more than the one chunk it passes on. Every
// addition's operands and order follow from the ring alone, so all nodes get the same bits, every
// time.
//
// Direct: a small all-reduce goes another way, in one hop from every node to every other one: see
// DirectRun. And one that has a Schedule goes as that says: see ScheduledRun.
//
// Streams: a node has up to `streams` units of a job in flight in which it sends of its own accord.
// The others wait, and the most urgent is next (see WaitingUnits); but as soon as a chunk of a
// waiting unit comes, that unit begins too. For the predecessor has begun it and waits for this
// node; if this node went on to wait for units that the predecessor holds back, neither would ever
// finish. Each unit that anybody begins so begins on all nodes, because the first chunk that its
// node sends of its own accord visits them all. In which order a node begins its waiting units and
// sends its chunks does not matter for that: each of them has its turn in the end.
#include "collective/engine.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <unordered_map>

#include "base/assert.h"
#include "collective/direct_runs.h"
#include "collective/operation_run.h"
#include "collective/scheduled_run.h"
#include "collective/waiting_units.h"

namespace braid {
namespace {

constexpr uint64_t kUnitBytesMax = uint64_t{16} << 30;  // keeps chunk numbers within 32 bits
// Of a one-node operation per loop round: about 0.1 ms.
constexpr uint64_t kWorkSliceBytes = 1 << 20;

class EngineImpl final : public Engine, public OperationHost {
 public:
  EngineImpl(Loop& loop, EngineOptions options, Events events)
      : loop_(loop), options_(options), events_(std::move(events)) {
    BRAID_ASSERT(options_.io_loops != 0 && options_.io_loop < options_.io_loops,
                 "the engine's loop is one of the I/O loops");
    BRAID_ASSERT(options_.streams != 0, "without streams nothing moves");
    BRAID_ASSERT(options_.unit_bytes >= 64 && options_.unit_bytes <= kUnitBytesMax,
                 "unit_bytes is 64 B to 16 GiB");
    BRAID_ASSERT(options_.chunk_bytes >= 64 && options_.chunk_bytes <= proto::kChunkBytesMax,
                 "chunk_bytes is 64 B to 4 MiB");
    uv_idle_init(loop_.uv(), work_idle_.get());
    work_idle_.set_initialised();
    work_idle_.get()->data = this;
  }

  ~EngineImpl() override {
    for (auto& [key, run] : runs_) run->abandon();
  }

  void set_links(Links& links) override { links_ = &links; }
  void begin_job(uint64_t job_key) override { direct_.begin_job(job_key); }
  void limit_job(uint64_t job_key, const JobShare& share) override;
  void start(Operation operation) override;
  void go(const OperationKey& key) override;
  void abort_job(uint64_t job_key) override;
  void on_chunk(NodeId from, const proto::ChunkHeader& header,
                std::span<const uint8_t> payload) override;
  EngineCounters counters() const override;

 private:
  struct Job {
    uint32_t streams_taken = 0;
    WaitingUnits waiting;
  };

  Link* find_link(NodeId peer) override {
    BRAID_ASSERT(links_ != nullptr, "set_links comes before the first start");
    return links_->find(peer);
  }
  void on_stream_taken(const CollectiveRun& run) override {
    ++jobs_[run.key().job_key].streams_taken;
  }
  void on_unit_finished(const CollectiveRun& run, bool held_stream) override;
  void on_bytes_reduced(uint64_t bytes) override { add(bytes_reduced_, bytes); }
  void on_progress(CollectiveRun& run) override;

  CollectiveRun* find_run(const OperationKey& key) const;
  uint32_t streams_of(uint64_t job_key) const;
  void add_run(std::shared_ptr<CollectiveRun> run);
  void begin_waiting(uint64_t job_key);
  void tell_news();
  void work();
  void defer_once();
  void settle();

  // One thread writes, any may read.
  static void add(std::atomic<uint64_t>& counter, uint64_t amount) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }

  Loop& loop_;
  const EngineOptions options_;
  const Events events_;
  Links* links_ = nullptr;
  std::unordered_map<OperationKey, std::shared_ptr<CollectiveRun>, OperationKeyHash> runs_;
  std::unordered_map<uint64_t, Job> jobs_;         // those with units that have begun or wait
  std::unordered_map<uint64_t, JobShare> shares_;  // of jobs that have one of their own
  DirectRuns direct_{*this,
                     [this] { defer_once(); },
                     {[this](const OperationKey& key) {
                        add(units_done_, 1);
                        events_.on_done(key);
                      },
                      [this](const OperationKey& key) { events_.on_retired(key); },
                      [this](uint64_t job_key, NodeId from) {
                        if (events_.on_overrun) events_.on_overrun(job_key, from);
                      }}};
  std::deque<std::shared_ptr<OperationRun>> local_work_;
  Handle<uv_idle_t> work_idle_;  // active while there is local work: one slice per loop round

  // Events, and units that begin because others have finished, wait for the end of the loop's
  // callback: whoever called into the engine (a link, a door) isn't called back from within.
  std::vector<std::shared_ptr<CollectiveRun>> news_;
  std::vector<uint64_t> jobs_with_free_streams_;
  bool is_deferred_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  std::atomic<uint64_t> units_done_{0};
  std::atomic<uint64_t> bytes_reduced_{0};
  std::atomic<uint64_t> chunks_duplicate_{0};
  std::atomic<uint64_t> chunks_stale_{0};
  std::atomic<uint64_t> chunks_malformed_{0};
};

void EngineImpl::limit_job(uint64_t job_key, const JobShare& share) {
  BRAID_ASSERT_IN_LOOP(loop_);
  BRAID_ASSERT(links_ != nullptr, "set_links comes before the first job");
  if (share == JobShare{}) {
    shares_.erase(job_key);
  } else {
    shares_[job_key] = share;
  }
  links_->limit(job_key, share.link);
  begin_waiting(job_key);
}

uint32_t EngineImpl::streams_of(uint64_t job_key) const {
  const auto found = shares_.find(job_key);
  return found == shares_.end() || found->second.streams == 0 ? options_.streams
                                                              : found->second.streams;
}

void EngineImpl::start(Operation operation) {
  BRAID_ASSERT_IN_LOOP(loop_);
  const OperationKey key = operation.key;
  const bool is_direct = operation.is_direct;
  if (is_direct && loop_of_unit(key, 0, options_.io_loops) == options_.io_loop)
    return direct_.start(std::move(operation));
  if (operation.schedule != nullptr)
    return add_run(std::make_shared<ScheduledRun>(std::move(operation), options_, *this));
  auto run = std::make_shared<OperationRun>(std::move(operation), options_, *this);
  add_run(run);
  if (is_direct) run->set_ready();  // another loop has its one unit
  if (!run->is_local() && !is_direct) return;
  if (run->units() == 0) {
    on_progress(*run);
    return;
  }
  if (local_work_.empty()) {
    uv_idle_start(work_idle_.get(),
                  [](uv_idle_t* idle) { static_cast<EngineImpl*>(idle->data)->work(); });
  }
  local_work_.push_back(std::move(run));
}

void EngineImpl::add_run(std::shared_ptr<CollectiveRun> run) {
  const OperationKey key = run->key();
  const bool is_new = runs_.emplace(key, std::move(run)).second;
  BRAID_ASSERT(is_new, "an operation is started once");
}

void EngineImpl::go(const OperationKey& key) {
  BRAID_ASSERT_IN_LOOP(loop_);
  CollectiveRun* run = find_run(key);
  if (run == nullptr || run->is_ready()) return;
  run->set_ready();
  bool has_waiting = false;
  for (size_t index = 0; index < run->units(); ++index) {
    if (run->unit(index).touched || !run->starts_here(index)) {
      run->begin_unit(index);
    } else {
      has_waiting = true;
    }
  }
  if (has_waiting) {
    jobs_[key.job_key].waiting.add(run->shared_from_this());
    begin_waiting(key.job_key);
  }
  if (run->is_done()) on_progress(*run);
}

void EngineImpl::begin_waiting(uint64_t job_key) {
  const auto found = jobs_.find(job_key);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  const uint32_t streams = streams_of(job_key);
  while (job.streams_taken < streams) {
    const auto next = job.waiting.take();
    if (!next) break;
    next->run->begin_unit(next->index);
  }
  if (job.waiting.is_empty() && job.streams_taken == 0) jobs_.erase(found);
}

void EngineImpl::on_unit_finished(const CollectiveRun& run, bool held_stream) {
  add(units_done_, 1);
  if (!held_stream) return;
  Job& job = jobs_[run.key().job_key];
  BRAID_ASSERT(job.streams_taken != 0, "a unit gave back a stream that it had not taken");
  --job.streams_taken;
  jobs_with_free_streams_.push_back(run.key().job_key);
  defer_once();
}

void EngineImpl::on_progress(CollectiveRun& run) {
  if (run.is_listed || (run.was_done_told && !run.is_retired())) return;
  run.is_listed = true;
  news_.push_back(run.shared_from_this());
  defer_once();
}

void EngineImpl::defer_once() {
  if (is_deferred_) return;
  is_deferred_ = true;
  loop_.defer([this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) settle();
  });
}

void EngineImpl::settle() {
  is_deferred_ = false;
  std::vector<uint64_t> jobs;
  jobs.swap(jobs_with_free_streams_);
  for (const uint64_t job_key : jobs) begin_waiting(job_key);
  tell_news();
  direct_.tell_news();
}

void EngineImpl::tell_news() {
  std::vector<std::shared_ptr<CollectiveRun>> news;
  news.swap(news_);
  for (const auto& run : news) {
    run->is_listed = false;
    if (!run->is_abandoned() && !run->was_done_told && run->is_done()) {
      run->was_done_told = true;
      events_.on_done(run->key());  // may abort the job
    }
    if (!run->is_abandoned() && run->is_retired()) {
      runs_.erase(run->key());
      run->abandon();
      events_.on_retired(run->key());
    }
  }
}

void EngineImpl::work() {
  OperationRun& run = *local_work_.front();
  if (run.work(kWorkSliceBytes)) {
    on_progress(run);
    local_work_.pop_front();
  }
  if (local_work_.empty()) uv_idle_stop(work_idle_.get());
}

void EngineImpl::abort_job(uint64_t job_key) {
  BRAID_ASSERT_IN_LOOP(loop_);
  for (auto it = runs_.begin(); it != runs_.end();) {
    if (it->first.job_key != job_key) {
      ++it;
      continue;
    }
    it->second->abandon();
    it = runs_.erase(it);
  }
  jobs_.erase(job_key);
  if (shares_.contains(job_key)) limit_job(job_key, {});
  direct_.abort_job(job_key);
  std::erase_if(local_work_, [](const auto& run) { return run->is_abandoned(); });
  if (local_work_.empty()) uv_idle_stop(work_idle_.get());
}

CollectiveRun* EngineImpl::find_run(const OperationKey& key) const {
  const auto found = runs_.find(key);
  return found == runs_.end() ? nullptr : found->second.get();
}

void EngineImpl::on_chunk(NodeId from, const proto::ChunkHeader& header,
                          std::span<const uint8_t> payload) {
  const OperationKey key{header.job_key, header.tensor, header.step};
  const bool is_direct = header.phase == static_cast<uint8_t>(proto::Phase::Direct);
  const auto is_known = [&] {
    return is_direct ? direct_.contains(key) : find_run(key) != nullptr;
  };
  if (!is_known()) events_.drain_door();
  std::optional<ChunkVerdict> verdict;
  if (is_direct) {
    verdict = direct_.on_chunk(from, header, payload);
  } else if (CollectiveRun* run = find_run(key)) {
    verdict = run->accept(from, header, payload);
  }
  if (!verdict) {
    add(chunks_stale_, 1);
    return;
  }
  switch (*verdict) {
    case ChunkVerdict::Taken:
      return;
    case ChunkVerdict::Duplicate:
      add(chunks_duplicate_, 1);
      return;
    case ChunkVerdict::Malformed:
      add(chunks_malformed_, 1);
      return;
  }
}

EngineCounters EngineImpl::counters() const {
  EngineCounters counters;
  counters.units_done = units_done_.load(std::memory_order_relaxed);
  counters.bytes_reduced = bytes_reduced_.load(std::memory_order_relaxed);
  counters.chunks_duplicate = chunks_duplicate_.load(std::memory_order_relaxed);
  counters.chunks_stale = chunks_stale_.load(std::memory_order_relaxed);
  counters.chunks_malformed = chunks_malformed_.load(std::memory_order_relaxed);
  return counters;
}

}  // namespace

std::unique_ptr<Engine> Engine::create(Loop& loop, EngineOptions options, Events events) {
  return std::make_unique<EngineImpl>(loop, options, std::move(events));
}

}  // namespace braid
