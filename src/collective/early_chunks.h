// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "collective/early_limits.h"
#include "collective/operation.h"
#include "collective/unit_run.h"

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

  struct Chunk {
    NodeId from = 0;
    proto::ChunkHeader header{};
    std::vector<uint8_t> payload;
  };

  // `on_overrun`: the peer has sent more for this job than any that keeps to the rules; once per
  // job.
  explicit EarlyChunks(std::function<void(uint64_t job_key, NodeId from)> on_overrun)
      : on_overrun_(std::move(on_overrun)) {}

  // Parts of its operations may come from now on, until forget_job().
  void begin_job(uint64_t job_key) { jobs_.try_emplace(job_key); }
  void forget_job(uint64_t job_key);
  // Of an operation that is not known. Nothing: it came for a job or an operation that has ended,
  // or is one too many, and on_overrun was told.
  std::optional<ChunkVerdict> keep(NodeId from, const proto::ChunkHeader& header,
                                   std::span<const uint8_t> payload);
  // What has come for the operation, which is known from now on.
  std::vector<Chunk> take(const OperationKey& key);
  void remember_end(const OperationKey& key);

 private:
  struct Job {
    uint64_t bytes = 0;
    bool has_overrun = false;
    // By tensor, the highest step that ended_ had and has forgotten. A tensor's steps grow, so what
    // comes for one that is no higher is late, however late it is.
    std::unordered_map<uint64_t, uint64_t> forgotten;
  };

  bool has_ended(const Job& job, const OperationKey& key) const;

  const std::function<void(uint64_t, NodeId)> on_overrun_;
  std::unordered_map<uint64_t, Job> jobs_;
  std::unordered_map<OperationKey, std::vector<Chunk>, OperationKeyHash> chunks_;
  // A part that comes a second time, since it was sent over two flows, is not early.
  std::unordered_set<OperationKey, OperationKeyHash> ended_;
  std::deque<OperationKey> ended_order_;
};

}  // namespace braid
