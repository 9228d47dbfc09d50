// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <braid.h>

#include "base/status.h"
#include "device/pieces.h"
#include "device/staging_pool.h"
#include "gpu/cuda_driver.h"

namespace braid::client {

// What braid_submit_device was asked for, checked; nothing of it is the caller's memory any more.
struct DeviceRequest {
  DeviceRequest(Pieces cut) : pieces(cut) {}  // NOLINT: only made by read_device_request

  braid_operation operation{};  // of the whole; its pointers are null
  std::optional<braid_update> update;
  std::vector<uint64_t> splits;  // to each rank, then from each; empty: none
  Pieces pieces;
  CUdeviceptr input = 0;
  CUdeviceptr result = 0;
  std::vector<CUdeviceptr> result_of_rank;  // empty: `result` has all blocks
  CUstream stream = nullptr;
  bool stream_waits = false;
  bool is_dynamic = false;  // in pieces, with steps that are counted here
  uint64_t deadline_ns = 0;
  std::string text;  // "all-reduce of 'a', step 7"
};

// Where the result of a piece comes to in host memory, for the stream that copies it.
struct StagedResult {
  uint8_t* memory = nullptr;
  uint32_t number = 0;  // Words::result_staged comes to it
};

// One ticket of braid_submit_device: from there to braid_device_release, and until the daemon has
// no part of it any more.
struct DeviceOperation {
  explicit DeviceOperation(DeviceRequest asked)
      : request(std::move(asked)), tickets(request.pieces.count(), 0) {}

  const DeviceRequest request;

  // With the lane's mutex of submissions: of what is queued.
  StagingPool::Buffer input;  // those that are not dynamic
  std::vector<StagedResult> results;
  uint32_t last_result = 0;  // the number of the last piece: Words::result_over comes to it
  CUevent results_are_there = nullptr;

  // With the lane's mutex of taking: not for those whose streams wait.
  bool is_taken = false;
  uint32_t last_taken = 0;  // Words::taken_over comes to it

  // With the worker's mutex.
  std::vector<braid_ticket> tickets;  // of the pieces, in order; 0: the daemon does not have it yet
  Status failure;                     // that it met

  // For the worker's thread alone.
  uint32_t collected = 0;  // pieces of a ring that have ended
  uint32_t dropped = 0;    // pieces whose tickets are given back, of an operation that was released
};

}  // namespace braid::client
