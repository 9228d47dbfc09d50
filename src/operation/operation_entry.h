// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "operation/codec_gauge.h"
#include "operation/gathered_operation.h"

namespace braid {

// Where an operation of a table is: see OperationTable.
enum class OperationState : uint8_t { Gathering, Placed, Running, Published };

// One operation of a table, from its first submission on.
struct OperationEntry {
  enum class ReadyTold : uint8_t { No, SeenRunning, Yes };

  OperationEntry(const JobOnNode& job, const OperationKey& key, const Submission& first,
                 std::shared_ptr<const OperationForm> form)
      : submitted(job, key, first, std::move(form)) {}

  GatheredOperation submitted;
  OperationState state = OperationState::Gathering;
  uint64_t result_offset = 0;
  uint64_t result_bytes = 0;
  std::shared_ptr<CodecGauge> gauge;  // nullptr: the operation is not sampled
  const Route* route = nullptr;       // the ring's; nullptr: around the ring
  std::vector<uint32_t> awaited;      // places of the targets that are not ready yet
  bool is_early = false;
  ReadyTold ready_told = ReadyTold::No;  // to the sources
  bool is_going = false;                 // no other node is awaited any more
  uint64_t went_ns = 0;                  // since then
  bool is_reported_overdue = false;
  bool is_retired = false;
};

using OperationEntries = std::unordered_map<OperationKey, OperationEntry, OperationKeyHash>;

}  // namespace braid
