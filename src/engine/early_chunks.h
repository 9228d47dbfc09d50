// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/count_kept.h"
#include "engine/early_limits.h"
#include "engine/operation.h"
#include "engine/unit_run.h"

namespace braid {

// Parts of early operations that have come to one I/O loop before this node has submitted them.
//
// A node begins up to kEarlyInFlight units of a job's early operations of its own accord; but one
// of which a part has come begins at once, since its sender waits. So parts that come early are
// bounded, and what early_limits.h allows always has room. A part that came was acknowledged and
// must not be lost, so a peer that sends more ends the job.
class EarlyChunks {
 public:
  static constexpr uint64_t kBytesMax = kEarlyBytesMax;  // of a job
  static constexpr size_t kEndedKept = 1024;             // operations
  // What a chunk takes beside its payload, about: its place among those of its operation, and the
  // operation's.
  static constexpr uint64_t kChunkCostBytes = 256;

  struct Chunk {
    NodeId from = 0;
    proto::ChunkHeader header{};
    std::vector<uint8_t> payload;
  };

  using OnOverrun = std::function<void(uint64_t job_key, NodeId from, const Status& room)>;

  // `on_overrun`: see Engine::Events; once per job.
  explicit EarlyChunks(OnOverrun on_overrun) : on_overrun_(std::move(on_overrun)) {}

  // Parts of its operations may come from now on, until forget_job(). `count_kept`: told of the
  // memory that they take.
  void begin_job(uint64_t job_key, CountKept count_kept) {
    jobs_[job_key].count_kept = std::move(count_kept);
  }
  void forget_job(uint64_t job_key);
  // Keeps a chunk of an operation that is not known yet. Nothing: it came for a job or an operation
  // that has ended, or is one too many, and on_overrun was told.
  std::optional<ChunkVerdict> keep(NodeId from, const proto::ChunkHeader& header,
                                   std::span<const uint8_t> payload);
  // What has come for the operation, which is known from now on.
  std::vector<Chunk> take(const OperationKey& key);
  void remember_end(const OperationKey& key);

 private:
  struct Job {
    uint64_t bytes = 0;       // of payload
    uint64_t kept_bytes = 0;  // of memory
    CountKept count_kept;
    bool has_overrun = false;
    // By tensor, the highest step that ended_ had and has forgotten. A tensor's steps grow, so what
    // comes for one that is no higher is late, however late it is.
    std::unordered_map<uint64_t, uint64_t> forgotten;
  };

  static uint64_t memory_of(size_t payload_bytes) { return payload_bytes + kChunkCostBytes; }
  static Status set_kept(Job& job, uint64_t bytes);
  bool has_ended(const Job& job, const OperationKey& key) const;

  const OnOverrun on_overrun_;
  std::unordered_map<uint64_t, Job> jobs_;
  std::unordered_map<OperationKey, std::vector<Chunk>, OperationKeyHash> chunks_;
  // A part that comes a second time, since it was sent over two flows, is not early.
  std::unordered_set<OperationKey, OperationKeyHash> ended_;
  std::deque<OperationKey> ended_order_;
};

}  // namespace braid
