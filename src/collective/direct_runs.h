// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "collective/direct_limits.h"
#include "collective/direct_run.h"

namespace braid {

// The direct operations of one I/O loop: which are in flight, and the parts that have come for
// those that this node has yet to submit.
//
// A node begins up to kInFlight operations of a job of its own accord; but an operation of which a
// part has come begins at once, since its sender waits. So parts that come early are bounded, and
// direct_bytes_max() is what always has room. A part that came was acknowledged and must not be
// lost, so a peer that sends more ends the job.
class DirectRuns {
 public:
  static constexpr uint32_t kInFlight = kDirectInFlight;
  static constexpr uint64_t kEarlyBytesMax = kDirectEarlyBytesMax;
  static constexpr size_t kEndedKept = 1024;

  // Told from within tell_news() only, but for on_overrun.
  struct Events {
    std::function<void(const OperationKey&)> on_done;
    std::function<void(const OperationKey&)> on_retired;
    // The peer has sent more for this job than any that keeps to the rules: it must end.
    std::function<void(uint64_t job_key, NodeId from)> on_overrun;
  };

  // `host` is asked for links; its on_progress is not used. `has_news`: tell_news() must be called,
  // after whoever calls now.
  DirectRuns(OperationHost& host, std::function<void()> has_news, Events events)
      : host_(host), has_news_(std::move(has_news)), events_(std::move(events)) {}
  ~DirectRuns();

  // Parts of its operations may come from now on.
  void begin_job(uint64_t job_key) { jobs_.try_emplace(job_key); }
  void start(Operation operation);
  bool contains(const OperationKey& key) const { return runs_.contains(key); }
  // Nothing: it came for a job or an operation that has ended, or is one too many, and on_overrun
  // was told.
  std::optional<ChunkVerdict> on_chunk(NodeId from, const proto::ChunkHeader& header,
                                       std::span<const uint8_t> payload);
  void abort_job(uint64_t job_key);
  void tell_news();

 private:
  using RunPointer = std::shared_ptr<DirectRun>;
  struct EarlyPart {
    NodeId from = 0;
    proto::ChunkHeader header{};
    std::vector<uint8_t> payload;
  };
  struct Job {
    uint32_t in_flight = 0;
    uint64_t early_bytes = 0;
    bool has_overrun = false;
    std::deque<RunPointer> waiting;
    // By tensor, the highest step that ended_ had and has forgotten. A tensor's steps grow, so what
    // comes for one that is no higher is late, however late it is.
    std::unordered_map<uint64_t, uint64_t> forgotten;
  };

  void begin(DirectRun& run);
  ChunkVerdict accept(DirectRun& run, NodeId from, const proto::ChunkHeader& header,
                      std::span<const uint8_t> payload);
  bool has_ended(const Job& job, const OperationKey& key) const;
  void remember_end(const OperationKey& key);

  OperationHost& host_;
  const std::function<void()> has_news_;
  const Events events_;
  std::unordered_map<OperationKey, RunPointer, OperationKeyHash> runs_;
  std::unordered_map<uint64_t, Job> jobs_;
  std::unordered_map<OperationKey, std::vector<EarlyPart>, OperationKeyHash> early_;
  // A part that comes a second time, since it was sent over two flows, is not early.
  std::unordered_set<OperationKey, OperationKeyHash> ended_;
  std::deque<OperationKey> ended_order_;
  std::vector<RunPointer> news_;
};

}  // namespace braid
