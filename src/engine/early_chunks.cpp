// SPDX-License-Identifier: Apache-2.0
#include "engine/early_chunks.h"

#include <algorithm>
#include <utility>

namespace braid {

std::optional<ChunkVerdict> EarlyChunks::keep(NodeId from, const proto::ChunkHeader& header,
                                              std::span<const uint8_t> payload) {
  const auto found = jobs_.find(header.job_key);
  if (found == jobs_.end()) return std::nullopt;
  Job& job = found->second;
  const OperationKey key{header.job_key, header.tensor, header.step};
  if (has_ended(job, key)) return std::nullopt;
  if (job.has_overrun) return std::nullopt;  // it ends
  const auto known = chunks_.find(key);
  if (known != chunks_.end() &&
      std::any_of(known->second.begin(), known->second.end(), [&](const Chunk& chunk) {
        return chunk.from == from && chunk.header.unit == header.unit &&
               chunk.header.segment == header.segment && chunk.header.chunk == header.chunk;
      }))
    return ChunkVerdict::Duplicate;
  const bool is_honest = job.bytes + payload.size() <= kBytesMax;
  const Status room =
      is_honest ? set_kept(job, job.kept_bytes + memory_of(payload.size())) : Status::ok();
  if (!is_honest || !room) {
    job.has_overrun = true;
    on_overrun_(header.job_key, from, room);
    return std::nullopt;
  }
  job.bytes += payload.size();
  chunks_[key].push_back({from, header, {payload.begin(), payload.end()}});
  return ChunkVerdict::Taken;
}

Status EarlyChunks::set_kept(Job& job, uint64_t bytes) {
  if (job.count_kept) BRAID_RETURN_IF_ERROR(job.count_kept(bytes));
  job.kept_bytes = bytes;
  return Status::ok();
}

std::vector<EarlyChunks::Chunk> EarlyChunks::take(const OperationKey& key) {
  auto chunks = chunks_.extract(key);
  if (chunks.empty()) return {};
  Job& job = jobs_.at(key.job_key);
  uint64_t kept_bytes = job.kept_bytes;
  for (const Chunk& chunk : chunks.mapped()) {
    job.bytes -= chunk.payload.size();
    kept_bytes -= memory_of(chunk.payload.size());
  }
  (void)set_kept(job, kept_bytes);  // less always goes
  return std::move(chunks.mapped());
}

bool EarlyChunks::has_ended(const Job& job, const OperationKey& key) const {
  if (ended_.contains(key)) return true;
  const auto forgotten = job.forgotten.find(key.tensor);
  return forgotten != job.forgotten.end() && key.step <= forgotten->second;
}

void EarlyChunks::remember_end(const OperationKey& key) {
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

void EarlyChunks::forget_job(uint64_t job_key) {
  std::erase_if(chunks_, [job_key](const auto& entry) { return entry.first.job_key == job_key; });
  jobs_.erase(job_key);
}

}  // namespace braid
