// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "device/device_operation.h"
#include "device/device_streams.h"
#include "device/device_worker.h"
#include "device/staging_pool.h"
#include "device/staging_ring.h"

namespace braid::client {

// The way of operations from their callers' streams to the worker. What a queued wait depends on is
// queued before it, or comes from the worker: so all inputs of an operation are queued before the
// first wait for a result, and even where all streams share one queue of the GPU, it ends. One
// thread at a time, in the context's scope.
class DeviceSubmissions {
 public:
  DeviceSubmissions(DeviceStreams& streams, StagingPool& planned_inputs, DeviceWorker& worker);

  // Queues the copies of an operation's input, and has the worker do the rest; then those of its
  // results, where streams wait for them. After an error it is queued in part.
  Status queue_input(const std::shared_ptr<DeviceOperation>& operation);
  Status queue_results(DeviceOperation& operation);

  // The last piece whose input is queued: Words::input_staged comes to it.
  uint32_t last_input() const { return last_input_; }

 private:
  Status wait_for_caller(const DeviceRequest& request);
  Status queue_piece(const std::shared_ptr<DeviceOperation>& operation, uint32_t index);
  Status place_input(DeviceOperation& operation, uint64_t bytes, uint32_t number, uint8_t*& memory);
  Status place_result(uint64_t bytes, QueuedPiece& queued);
  Status signal_input(uint32_t number);

  DeviceStreams& streams_;
  StagingPool& planned_inputs_;
  DeviceWorker& worker_;
  const Words words_;
  StagingRing input_ring_;
  StagingRing result_ring_;
  uint32_t last_input_ = 0;
  uint32_t last_result_ = 0;
};

// Waits until the word has come to `number`, or the worker has failed, or the operation's time is
// over.
Status await_word(const Word& word, uint32_t number, const DeviceRequest& request,
                  const DeviceWorker& worker);
// A piece's result to where its operation wants it.
Status copy_result(DeviceStream& stream, const DeviceRequest& request, const Rows& rows,
                   const uint8_t* memory);

}  // namespace braid::client
