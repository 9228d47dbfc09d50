// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <braid.h>

#include "arenas.h"
#include "base/status.h"
#include "proto/ring.h"
#include "proto/types.h"
#include "tensor_table.h"
#include "timeouts.h"

namespace braid::client {

inline constexpr uint32_t kNoTensor = UINT32_MAX;

// What one braid_operation or braid_message asks for, checked. A message has no tensor; `root` is
// its other rank, `step` the tag and `count` the bytes.
struct Request {
  proto::SubmitKind kind = proto::SubmitKind::Operation;
  Collective collective = Collective::AllReduce;
  DataType dtype = DataType::Float32;
  Reduction reduction = Reduction::Sum;
  uint64_t step = 0;
  uint64_t count = 0;
  uint32_t root = 0;
  uint32_t timeout_ms = 0;
  uint32_t extension_ms = 0;    // how much of that is an extension
  const void* input = nullptr;  // null: this rank gives no data
  uint64_t input_bytes = 0;
  uint64_t result_bytes = 0;    // of this rank's result
  uint32_t tensor = kNoTensor;  // handle
  // What the daemon reads beside the input. All-to-all: elements to each rank, then from each rank.
  // The UpdateEntry of a tensor with state.
  std::vector<uint64_t> table;

  bool is_message() const { return kind != proto::SubmitKind::Operation; }
};

struct Rank {
  uint32_t rank = 0;
  uint32_t world_size = 1;
};

Status parse_operation(const braid_operation* operation, const TensorTable& tensors, Rank rank,
                       const Timeouts& timeouts, Request& request);
// `kind`: Send or Receive.
Status parse_message(const braid_message* message, proto::SubmitKind kind, Rank rank,
                     const Timeouts& timeouts, Request& request);
// "all-reduce of 'layer1.weight', step 7"; "send of 400 bytes to rank 3, tag 7"
std::string describe(const Request& request, const TensorTable& tensors);

// Where the daemon finds what an operation reads.
struct StagedInput {
  ArenaPlace place;
  uint64_t table = 0;              // offset of the request's, in the same arena
  std::optional<ArenaPlace> copy;  // what was copied for it: its input, its table
};

// One ticket: from braid_submit to braid_release.
struct Operation {
  enum class State { Preparing, InFlight, Done };
  State state = State::Preparing;
  Request request;
  StagedInput input;
  uint64_t deadline_ns = 0;  // past the daemon's own
  uint64_t result_offset = 0;
  uint32_t source = 0;  // of a receive: the rank that has sent
};

}  // namespace braid::client
