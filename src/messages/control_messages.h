// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <flatbuffers/flatbuffers.h>

#include "base/peer.h"
#include "base/status.h"
#include "engine/operation.h"
#include "messages/job_owner.h"
#include "messages/signature.h"

namespace braid {

// A node of a job and its ranks, as JobStart carries it.
struct MemberNode {
  Peer peer;
  std::vector<uint32_t> ranks;  // ascending
  std::string rack{};           // empty: not known
};

// Which algorithms a job's all-reduces take: see Ring.
struct Algorithms {
  uint64_t direct_bytes = 0;
  uint64_t halving_bytes = 0;
  bool is_hierarchical = false;
  uint64_t two_hops_bytes = 0;
};

// How a node cuts operations into units and chunks; chunks are known by their numbers, so all nodes
// of a job must agree.
struct CutSettings {
  uint64_t unit_bytes = 0;
  uint32_t chunk_bytes = 0;
  uint32_t io_loops = 0;
  bool operator==(const CutSettings&) const = default;
};

// Finished control messages about jobs, one function per table of proto/control.fbs.
using ControlBuffer = flatbuffers::FlatBufferBuilder;

ControlBuffer make_join_job(const std::string& name, uint32_t world_size, uint32_t rank,
                            int64_t process_id, uint32_t timeout_ms, const CutSettings& cut = {},
                            uint32_t weight = 1, const std::string& rack = {},
                            const JobOwner& owner = {}, uint32_t user = 0);
ControlBuffer make_job_start(const std::string& name, uint32_t world_size, uint32_t epoch,
                             uint64_t job_key, std::span<const MemberNode> nodes,
                             const Algorithms& algorithms = {}, uint32_t weight = 1,
                             const JobOwner& owner = {}, uint32_t sample_every_steps = 0);
ControlBuffer make_job_ready(uint64_t job_key);
ControlBuffer make_job_go(uint64_t job_key);
// `owner` counts where the job has no key yet.
ControlBuffer make_fail_job(uint64_t job_key, const std::string& name, const Status& reason,
                            const JobOwner& owner = {});
ControlBuffer make_job_failed(uint64_t job_key, const std::string& name, const Status& reason,
                              const JobOwner& owner = {});
ControlBuffer make_job_ended(uint64_t job_key);
ControlBuffer make_operation_ready(const OperationKey& key, const Signature& signature);
// What a job's duel says: see DuelSwitch.
struct DuelNews {
  proto::DuelSubject subject = proto::DuelSubject::Polling;
  bool rival = false;
  bool pays = false;
  double gain = 0;
  uint32_t duels = 0;
};
ControlBuffer make_duel_switch(uint64_t job_key, const DuelNews& news);
ControlBuffer make_operation_query(const OperationKey& key);
ControlBuffer make_operation_report(const OperationKey& key,
                                    std::span<const uint32_t> missing_ranks,
                                    const std::string& detail);
ControlBuffer make_operation_overdue(const OperationKey& key, uint32_t timeout_ms,
                                     const std::string& description);

// What a timeline is asked for: see TimelineSpan.
struct TimelineSpan {
  uint32_t steps = 0;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  uint64_t bytes_max = 0;
};
// `timeline`: nothing: facts.
ControlBuffer make_facts_query(uint64_t job_key, uint64_t question, bool of_all_nodes,
                               const std::optional<TimelineSpan>& timeline = {});
std::optional<TimelineSpan> timeline_of(const proto::FactsQuery& query);
ControlBuffer make_facts_reply(uint64_t job_key, uint64_t question, std::string_view json,
                               uint32_t part = 0, uint32_t parts = 1);
ControlBuffer make_clock_query(uint64_t job_key, uint64_t question, uint64_t asked_ns);
ControlBuffer make_clock_reply(const proto::ClockQuery& query, uint64_t received_ns,
                               uint64_t answered_ns);

// Reads the two failure tables; a code out of range becomes Internal.
Status failure_status(uint8_t code, const flatbuffers::String* reason);

}  // namespace braid
