// SPDX-License-Identifier: Apache-2.0
#include "collective/direct_runs.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace braid {

DirectRuns::~DirectRuns() {
  for (auto& [key, run] : runs_) run->abandon();
}

void DirectRuns::start(Operation operation) {
  const OperationKey key = operation.key;
  auto run = std::make_shared<DirectRun>(std::move(operation));
  const bool is_new = runs_.emplace(key, run).second;
  BRAID_ASSERT(is_new, "an operation is started once");
  Job& job = jobs_.at(key.job_key);
  auto early = early_.extract(key);
  if (early.empty() && job.in_flight >= kInFlight) {
    job.waiting.push_back(std::move(run));
    return;
  }
  begin(*run);
  if (early.empty()) return;
  for (const EarlyPart& part : early.mapped()) {
    job.early_bytes -= part.payload.size();
    accept(*run, part.from, part.header, part.payload);
  }
}

void DirectRuns::begin(DirectRun& run) {
  ++jobs_.at(run.key().job_key).in_flight;
  run.begin(host_);
}

std::optional<ChunkVerdict> DirectRuns::on_chunk(NodeId from, const proto::ChunkHeader& header,
                                                 std::span<const uint8_t> payload) {
  const OperationKey key{header.job_key, header.tensor, header.step};
  if (const auto known = runs_.find(key); known != runs_.end()) {
    const RunPointer run = known->second;
    if (!run->has_begun()) begin(*run);
    return accept(*run, from, header, payload);
  }
  const auto found = jobs_.find(header.job_key);
  if (found == jobs_.end()) return std::nullopt;
  Job& job = found->second;
  if (has_ended(job, key)) return std::nullopt;
  if (job.early_bytes + payload.size() > kEarlyBytesMax) {
    if (!std::exchange(job.has_overrun, true)) events_.on_overrun(header.job_key, from);
    return std::nullopt;
  }
  std::vector<EarlyPart>& parts = early_[key];
  if (std::any_of(parts.begin(), parts.end(),
                  [from](const EarlyPart& part) { return part.from == from; }))
    return ChunkVerdict::Duplicate;
  job.early_bytes += payload.size();
  parts.push_back({from, header, {payload.begin(), payload.end()}});
  return ChunkVerdict::Taken;
}

ChunkVerdict DirectRuns::accept(DirectRun& run, NodeId from, const proto::ChunkHeader& header,
                                std::span<const uint8_t> payload) {
  const ChunkVerdict verdict = run.accept(from, header, payload);
  if (verdict == ChunkVerdict::Taken && run.is_done()) {
    --jobs_.at(run.key().job_key).in_flight;
    news_.push_back(run.shared_from_this());
    has_news_();
  }
  return verdict;
}

bool DirectRuns::has_ended(const Job& job, const OperationKey& key) const {
  if (ended_.contains(key)) return true;
  const auto forgotten = job.forgotten.find(key.tensor);
  return forgotten != job.forgotten.end() && key.step <= forgotten->second;
}

void DirectRuns::remember_end(const OperationKey& key) {
  if (!ended_.insert(key).second) return;
  ended_order_.push_back(key);
  if (ended_order_.size() <= kEndedKept) return;
  const OperationKey oldest = ended_order_.front();
  ended_.erase(oldest);
  ended_order_.pop_front();
  if (const auto job = jobs_.find(oldest.job_key); job != jobs_.end()) {
    uint64_t& step = job->second.forgotten[oldest.tensor];
    step = std::max(step, oldest.step);
  }
}

void DirectRuns::tell_news() {
  std::vector<RunPointer> news;
  news.swap(news_);
  for (const RunPointer& run : news) {
    const OperationKey key = run->key();
    if (const auto job = jobs_.find(key.job_key); job != jobs_.end()) {
      while (!job->second.waiting.empty() && job->second.in_flight < kInFlight) {
        const RunPointer next = std::move(job->second.waiting.front());
        job->second.waiting.pop_front();
        if (!next->has_begun()) begin(*next);
      }
    }
    if (run->is_finished()) continue;  // its job was aborted
    remember_end(key);
    run->finish();
    events_.on_done(key);  // may abort the job
    if (runs_.erase(key) != 0) events_.on_retired(key);
  }
}

void DirectRuns::abort_job(uint64_t job_key) {
  std::erase_if(runs_, [job_key](auto& entry) {
    if (entry.first.job_key != job_key) return false;
    entry.second->abandon();
    return true;
  });
  std::erase_if(early_, [job_key](const auto& entry) { return entry.first.job_key == job_key; });
  jobs_.erase(job_key);
}

}  // namespace braid
