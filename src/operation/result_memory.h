// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/operation.h"
#include "ipc/extent_allocator.h"
#include "ipc/memory_blocks.h"
#include "ipc/shared_memory.h"
#include "ipc/user_quotas.h"
#include "loop/work_thread.h"

namespace braid {

// The result memory of one job on this node, out of which every operation gets an
// extent, and the local trainers' input arenas, kept mapped as long as anything may read them.
// Memory is reserved by a thread of its own, in slices, between which other jobs have their turn.
// What nobody has used for some rounds goes back to the kernel, by the same thread, and is reserved
// again before it is used again. On the control loop; the bytes anywhere.
class ResultMemory final : public JobMemory, public std::enable_shared_from_this<ResultMemory> {
 public:
  static constexpr uint64_t kReserveSliceBytes = 64ull << 20;
  // Stays with the job, however long nobody uses it.
  static constexpr uint64_t kKeptBytes = 16ull << 20;

  ~ResultMemory() override;

  // `bytes` of address space; memory is taken as it is needed. `worker` outlives this object.
  static Result<std::shared_ptr<ResultMemory>> create(
      WorkThread& worker, const std::string& job_name, uint64_t bytes,
      std::vector<std::shared_ptr<SharedMemory>> arenas);

  // Told each time that more memory has come, or why none comes any more; never from within a call
  // of this object's.
  using GrowthCallback = std::function<void(const Status&)>;
  void set_growth_callback(GrowthCallback callback) { on_growth_ = std::move(callback); }

  // The offset of an extent. It may be used once has_memory says so, which may be at once: running
  // out of memory is an error then, not a signal at the first touch.
  Result<uint64_t> allocate(uint64_t bytes);
  void free(uint64_t offset);
  // One more arena that operations may read.
  void hold(std::shared_ptr<SharedMemory> arena) { arenas_.push_back(std::move(arena)); }
  bool has_memory(uint64_t offset, uint64_t bytes) const {
    return blocks_.has_memory({offset, bytes});
  }

  // To be called every few seconds, while it says that it has something to give back, or may have.
  bool pass_round();
  bool may_give_back() const { return can_give_back_ && blocks_.may_give_back(); }

  uint8_t* data() { return memory_->data(); }
  // For a process that may read it from now on. It counts as its user's as long as this exists, so
  // who gives it away keeps this until that process has gone, and says so then. The pages of what
  // every reader has gone from are given back, also where another process still has the descriptor;
  // what this daemon has ended under a reader may still be read, and lingers.
  int fd_for_reader() {
    ++readers_;
    return memory_->fd();
  }
  void on_reader_gone() { --readers_; }
  // Counts the memory as the job's user's; without it, nobody does. Before the first extent.
  void set_charge(UserCharge charge) { charge_ = std::move(charge); }
  uint64_t size() const { return memory_->size(); }
  // Reserved, or soon will be.
  uint64_t reserved_bytes() const { return blocks_.taken_bytes(); }
  uint64_t used_bytes() const { return allocator_.used(); }

 private:
  ResultMemory(WorkThread& worker, std::shared_ptr<SharedMemory> memory,
               std::vector<std::shared_ptr<SharedMemory>> arenas);
  void let_go(uint64_t offset);
  Status grow();
  void on_slice(const MemoryRange& slice, const Status& reserved);
  void give_back();
  void on_given_back(const MemoryRange& slice, const Status& given);

  WorkThread& worker_;
  const std::shared_ptr<SharedMemory> memory_;
  std::vector<std::shared_ptr<SharedMemory>> arenas_;
  ExtentAllocator allocator_;
  MemoryBlocks blocks_;
  GrowthCallback on_growth_;
  uint32_t readers_ = 0;
  UserCharge charge_;        // for all that is reserved or soon will be
  bool is_growing_ = false;  // a slice is being reserved
  Status failure_;           // of the slice that could not be
  bool is_giving_back_ = false;
  bool can_give_back_ = true;
};

}  // namespace braid
