// SPDX-License-Identifier: Apache-2.0
//
// clang-format off
// The words, for the whole room:
//   unit     the part of an operation that is scheduled on its own and belongs to one I/O loop, the
//            same on all nodes
//   segment  the part of a unit that one node owns; around the ring segment s is node s's
//   chunk    the part of a segment that travels in one message
//   route    where a segment's parts come together, in which order, and where its sum goes out
//   hop      one node's treatment of a chunk: add or store it, pass it on
// clang-format on
//
// Reduce-scatter: segment s starts at node s + 1, whose own contribution it is there, and goes s +
// 1 → s + 2 → … → s; each hop adds its node's contribution. At the owner the sum is complete.
// All-gather: it goes on s → s + 1 → … → s - 1; each hop stores it. An all-reduce is both, one
// after the other, chunk by chunk: no node waits for more than the one chunk it passes on. Every
// addition's operands and order follow from the ring alone, so all nodes get the same bits, every
// time.
//
// Other algorithms send segments by other routes, see route.h; the rest is the same.
//
// Streams: a node has up to `streams` units of a job in flight in which it sends of its own accord.
// The others wait, and the most urgent is next (see WaitingUnits); but as soon as a chunk of a
// waiting unit comes, that unit begins too. For the predecessor has begun it and waits for this
// node; if this node went on to wait for units that the predecessor holds back, neither would ever
// finish. Each unit that anybody begins so begins on all nodes, because the first chunk that its
// node sends of its own accord visits them all (Route::begins_others). In which order a node begins
// its waiting units and sends its chunks does not matter for that: each of them has its turn in the
// end.
#include "engine/engine.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <unordered_map>

#include "base/assert.h"
#include "base/job_turns.h"
#include "base/lifetime.h"
#include "engine/early_chunks.h"
#include "engine/operation_run.h"
#include "engine/stream_slots.h"
#include "engine/waiting_units.h"

namespace braid {
namespace {

constexpr uint64_t kUnitBytesMax = uint64_t{16} << 30;  // keeps chunk numbers within 32 bits
// Of what stays on this node per loop round: about 0.1 ms.
constexpr uint64_t kWorkSliceBytes = 1 << 20;
// What a turn costs beside its bytes: else barriers would cost nothing. About what it takes to
// begin a small operation and to tell its end, as bytes.
constexpr uint64_t kTurnBytes = 16 << 10;

OperationKey key_of(const proto::ChunkHeader& header) {
  return {header.job_key, header.tensor, header.step};
}

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
  void begin_job(uint64_t job_key, CountKept count_kept) override {
    early_.begin_job(job_key, std::move(count_kept));
  }
  void limit_job(uint64_t job_key, const JobShare& share) override;
  void start(Operation operation) override;
  void go(const OperationKey& key) override;
  void abort_job(uint64_t job_key) override;
  void on_chunk(NodeId from, const proto::ChunkHeader& header,
                std::span<const uint8_t> payload) override;
  ChunkIntake intake(NodeId from, const proto::ChunkHeader& header) override;
  void fold(NodeId from, const proto::ChunkHeader& header, uint32_t offset,
            std::span<const uint8_t> piece) override;
  void on_chunk_taken(NodeId from, const proto::ChunkHeader& header) override;
  EngineCounters counters() const override;

 private:
  // Units of a job that are in flight, so many at a time, and those that wait.
  struct Lane {
    StreamSlots slots;
    WaitingUnits waiting;
  };
  struct Job {
    Lane streams;
    Lane early;
    JobShare share;
  };

  Links& links() override {
    BRAID_ASSERT(links_ != nullptr, "set_links comes before the first start");
    return *links_;
  }
  Lane& lane_of(const OperationRun& run) {
    Job& job = jobs_[run.key().job_key];
    return run.is_early() ? job.early : job.streams;
  }
  uint32_t take_stream(const OperationRun& run) override { return lane_of(run).slots.take(); }
  void on_unit_finished(const OperationRun& run, std::optional<uint32_t> stream) override;
  LoopTimeline* timeline() override { return options_.timeline; }
  void on_bytes_reduced(uint64_t bytes) override { add(bytes_reduced_, bytes); }
  void on_bytes_copied(uint64_t bytes) override { add(bytes_copied_, bytes); }
  void on_bytes_carried(uint64_t bytes) override { add(bytes_carried_, bytes); }
  void on_progress(OperationRun& run) override;

  OperationRun* find_run(const OperationKey& key) const;
  void start_local(std::shared_ptr<OperationRun> run);
  void add_work(std::shared_ptr<OperationRun> run);
  void begin_ready(OperationRun& run);
  void begin_waiting(uint64_t job_key);
  static void begin_waiting(Lane& lane, uint32_t units_max);
  void count(ChunkVerdict verdict);
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
  std::unordered_map<OperationKey, std::shared_ptr<OperationRun>, OperationKeyHash> runs_;
  std::unordered_map<uint64_t, Job> jobs_;  // until abort_job
  EarlyChunks early_{[this](uint64_t job_key, NodeId from, const Status& room) {
    if (events_.on_overrun) events_.on_overrun(job_key, from, room);
  }};
  // What stays on this node; jobs take turns.
  JobTurns<std::deque<std::shared_ptr<OperationRun>>> local_work_;
  Handle<uv_idle_t> work_idle_;  // active while there is local work: one slice per loop round

  // Events, and units that begin because others have finished, wait for the end of the loop's
  // callback: the caller of the engine (a link, a door) isn't called back from within.
  std::vector<std::shared_ptr<OperationRun>> news_;
  std::vector<uint64_t> jobs_with_free_streams_;
  bool is_deferred_ = false;

  std::atomic<uint64_t> units_done_{0};
  std::atomic<uint64_t> bytes_reduced_{0};
  std::atomic<uint64_t> bytes_copied_{0};
  std::atomic<uint64_t> bytes_carried_{0};
  std::atomic<uint64_t> chunks_duplicate_{0};
  std::atomic<uint64_t> chunks_stale_{0};
  std::atomic<uint64_t> chunks_malformed_{0};
  Lifetime lifetime_;  // of what is deferred
};

void EngineImpl::limit_job(uint64_t job_key, const JobShare& share) {
  BRAID_ASSERT_IN_LOOP(loop_);
  BRAID_ASSERT(links_ != nullptr, "set_links comes before the first job");
  jobs_[job_key].share = share;
  links_->limit(job_key, share.link);
  begin_waiting(job_key);
}

void EngineImpl::start(Operation operation) {
  BRAID_ASSERT_IN_LOOP(loop_);
  auto run = std::make_shared<OperationRun>(std::move(operation), options_, *this);
  const bool is_new = runs_.emplace(run->key(), run).second;
  BRAID_ASSERT(is_new, "an operation is started once");
  if (run->is_local()) return start_local(std::move(run));
  if (!run->is_early()) return;
  run->set_ready();
  for (const EarlyChunks::Chunk& chunk : early_.take(run->key()))
    count(run->accept(chunk.from, chunk.header, chunk.payload));
  begin_ready(*run);
}

void EngineImpl::start_local(std::shared_ptr<OperationRun> run) {
  run->set_ready();
  if (run->is_done()) return on_progress(*run);  // it has no units
  add_work(std::move(run));
}

void EngineImpl::add_work(std::shared_ptr<OperationRun> run) {
  uv_idle_start(work_idle_.get(),
                [](uv_idle_t* idle) { static_cast<EngineImpl*>(idle->data)->work(); });
  local_work_.queue_of(run->key().job_key).push_back(std::move(run));
}

void EngineImpl::go(const OperationKey& key) {
  BRAID_ASSERT_IN_LOOP(loop_);
  OperationRun* run = find_run(key);
  if (run == nullptr || run->is_ready()) return;
  run->set_ready();
  if (!run->has_work()) return begin_ready(*run);
  if (run->is_done()) return on_progress(*run);  // it has no units
  add_work(run->shared_from_this());
}

void EngineImpl::begin_ready(OperationRun& run) {
  bool has_waiting = false;
  for (UnitRun& unit : run.units()) {
    if (unit.has_begun()) continue;
    if (unit.is_touched() || !unit.waits_for_stream()) {
      unit.begin();
    } else {
      has_waiting = true;
    }
  }
  if (has_waiting) {
    lane_of(run).waiting.add(run.shared_from_this());
    begin_waiting(run.key().job_key);
  }
  if (run.is_done()) on_progress(run);
}

void EngineImpl::begin_waiting(uint64_t job_key) {
  const auto found = jobs_.find(job_key);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  begin_waiting(job.streams, job.share.streams == 0 ? options_.streams : job.share.streams);
  begin_waiting(job.early, kEarlyInFlight);
}

void EngineImpl::begin_waiting(Lane& lane, uint32_t units_max) {
  while (lane.slots.taken() < units_max) {
    const auto next = lane.waiting.take();
    if (!next) return;
    next->run->units()[next->index].begin();
  }
}

void EngineImpl::on_unit_finished(const OperationRun& run, std::optional<uint32_t> stream) {
  add(units_done_, 1);
  if (!stream) return;
  lane_of(run).slots.give_back(*stream);
  jobs_with_free_streams_.push_back(run.key().job_key);
  defer_once();
}

void EngineImpl::on_progress(OperationRun& run) {
  if (run.is_listed || (run.was_done_told && !run.is_retired())) return;
  run.is_listed = true;
  news_.push_back(run.shared_from_this());
  defer_once();
}

void EngineImpl::defer_once() {
  if (is_deferred_) return;
  is_deferred_ = true;
  loop_.defer(lifetime_.guard([this] { settle(); }));
}

void EngineImpl::settle() {
  is_deferred_ = false;
  std::vector<uint64_t> jobs;
  jobs.swap(jobs_with_free_streams_);
  for (const uint64_t job_key : jobs) begin_waiting(job_key);
  std::vector<std::shared_ptr<OperationRun>> news;
  news.swap(news_);
  for (const auto& run : news) {
    run->is_listed = false;
    if (!run->is_abandoned() && !run->was_done_told && run->is_done()) {
      run->was_done_told = true;
      events_.on_done(run->key());  // may abort the job
    }
    if (!run->is_abandoned() && run->is_retired()) {
      runs_.erase(run->key());
      if (run->is_early()) early_.remember_end(run->key());
      run->retire();
      events_.on_retired(run->key());
    }
  }
}

// One slice: turns of several jobs, or many of one.
void EngineImpl::work() {
  for (uint64_t left = kWorkSliceBytes; left != 0 && local_work_.has_next();) {
    auto& queue = local_work_.begin_turn();
    OperationRun& run = *queue.front();
    const uint32_t weight = jobs_[run.key().job_key].share.link.weight;
    uint64_t left_of_bytes = left;
    const bool is_over = run.work(left_of_bytes);
    // What it sends to others is enough for a round.
    left_of_bytes = run.is_local() ? left_of_bytes - std::min(left_of_bytes, kTurnBytes) : 0;
    local_work_.end_turn(std::max(left - left_of_bytes, kTurnBytes), weight);
    left = left_of_bytes;
    if (!is_over) continue;
    on_progress(run);
    queue.pop_front();
  }
  if (!local_work_.has_next()) uv_idle_stop(work_idle_.get());
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
  if (const auto job = jobs_.extract(job_key); job && job.mapped().share != JobShare{})
    links_->limit(job_key, {});
  early_.forget_job(job_key);
  if (auto* const work = local_work_.find(job_key)) work->clear();
  if (!local_work_.has_next()) uv_idle_stop(work_idle_.get());
}

OperationRun* EngineImpl::find_run(const OperationKey& key) const {
  const auto found = runs_.find(key);
  return found == runs_.end() ? nullptr : found->second.get();
}

void EngineImpl::on_chunk(NodeId from, const proto::ChunkHeader& header,
                          std::span<const uint8_t> payload) {
  const OperationKey key = key_of(header);
  if (find_run(key) == nullptr) events_.drain_door();
  std::optional<ChunkVerdict> verdict;
  if (OperationRun* run = find_run(key)) {
    verdict = run->accept(from, header, payload);
  } else if (header.signature != 0) {
    verdict = early_.keep(from, header, payload);
    if (verdict == ChunkVerdict::Taken) add(bytes_copied_, payload.size());
  }
  if (verdict) {
    count(*verdict);
  } else {
    add(chunks_stale_, 1);
  }
}

ChunkIntake EngineImpl::intake(NodeId from, const proto::ChunkHeader& header) {
  const OperationKey key = key_of(header);
  OperationRun* run = find_run(key);
  // These go to on_chunk() in any case, which looks at the door itself.
  const bool is_whole = header.phase == static_cast<uint8_t>(proto::Phase::Direct) ||
                        header.encoding != static_cast<uint8_t>(Encoding::Plain);
  if (run == nullptr && !is_whole) {
    events_.drain_door();
    run = find_run(key);
  }
  return run == nullptr ? ChunkIntake{} : run->intake(from, header);
}

void EngineImpl::fold(NodeId from, const proto::ChunkHeader& header, uint32_t offset,
                      std::span<const uint8_t> piece) {
  OperationRun* const run = find_run(key_of(header));
  BRAID_ASSERT(run != nullptr, "intake() comes before each piece");
  run->fold(from, header, offset, piece);
}

void EngineImpl::on_chunk_taken(NodeId from, const proto::ChunkHeader& header) {
  OperationRun* const run = find_run(key_of(header));
  BRAID_ASSERT(run != nullptr, "intake() comes before the last piece");
  run->on_taken(from, header);
}

void EngineImpl::count(ChunkVerdict verdict) {
  switch (verdict) {
    case ChunkVerdict::Taken:
      return;
    case ChunkVerdict::Duplicate:
      return add(chunks_duplicate_, 1);
    case ChunkVerdict::Malformed:
      return add(chunks_malformed_, 1);
  }
}

EngineCounters EngineImpl::counters() const {
  EngineCounters counters;
  counters.units_done = units_done_.load(std::memory_order_relaxed);
  counters.bytes_reduced = bytes_reduced_.load(std::memory_order_relaxed);
  counters.bytes_copied = bytes_copied_.load(std::memory_order_relaxed);
  counters.bytes_carried = bytes_carried_.load(std::memory_order_relaxed);
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
