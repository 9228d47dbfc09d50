// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <braid.h>

#include "base/status.h"
#include "bench/environment.h"

namespace braid::bench {

// One rank of a job, over braid.h: libbraid's errors as Status, its memory as owners. One thread.
class Trainer {
 public:
  struct FreeArena {
    braid_job* job = nullptr;
    void operator()(void* memory) const { (void)braid_free(job, memory); }
  };
  using ArenaMemory = std::unique_ptr<void, FreeArena>;

  static Result<std::unique_ptr<Trainer>> open(const Environment& environment,
                                               const std::string& socket_path, uint32_t timeout_ms,
                                               uint64_t arena_bytes);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer();

  struct Tensor {
    std::string name;
    uint32_t dtype = BRAID_FLOAT32;
    uint64_t count = 0;
    bool is_dynamic = false;
    bool is_planned = false;
    std::string codec = {};  // of planned ones; empty: none
  };
  Result<uint32_t> register_tensor(const Tensor& tensor);
  // In the order of backward; the handles in the same order.
  Result<std::vector<uint32_t>> register_tensors(std::span<const Tensor> tensors);
  Result<ArenaMemory> allocate(size_t bytes);

  static braid_operation all_reduce(uint32_t tensor, uint64_t step, braid_reduction reduction,
                                    const void* input);
  // After the end: the result is there until release(ticket).
  Result<const void*> result(braid_ticket ticket, size_t bytes);
  // The block of an all-gather that `rank` gave; likewise.
  Result<const void*> result_of_rank(braid_ticket ticket, uint32_t rank, size_t bytes);
  Status release(braid_ticket ticket);
  Status submit(const braid_operation& operation, braid_ticket& ticket);
  Status wait(braid_ticket ticket);
  // Submits, and waits for the end.
  Status run(const braid_operation& operation, braid_ticket& ticket);
  Status barrier(uint32_t tensor, uint64_t step);
  // An operation on memory of a GPU: queues it, lets its stream wait for the result, and gives the
  // ticket back.
  Status queue(const braid_operation& operation, const braid_device_buffers& buffers);

 private:
  explicit Trainer(braid_job* job) : job_(job) {}

  braid_job* job_;
};

}  // namespace braid::bench
