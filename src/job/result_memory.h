// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "collective/operation.h"
#include "ipc/extent_allocator.h"
#include "ipc/segment.h"

namespace braid {

// The memory of one job on this node: the result segment, out of which every operation gets an
// extent, and the local trainers' input arenas, kept mapped as long as anything may read them.
// allocate and free on the control loop; the bytes anywhere.
class ResultMemory final : public JobMemory {
 public:
  // `bytes` of address space; memory is taken as it is needed.
  static Result<std::shared_ptr<ResultMemory>> create(const std::string& job_name, uint64_t bytes,
                                                      std::vector<std::shared_ptr<Segment>> arenas);

  // The offset of an extent whose memory is there: running out of it is an error here, not a signal
  // later.
  Result<uint64_t> allocate(uint64_t bytes);
  void free(uint64_t offset);

  uint8_t* data() { return segment_.data(); }
  int fd() const { return segment_.fd(); }
  uint64_t size() const { return segment_.size(); }

 private:
  ResultMemory(Segment segment, std::vector<std::shared_ptr<Segment>> arenas)
      : segment_(std::move(segment)), arenas_(std::move(arenas)), allocator_(segment_.size()) {}

  Segment segment_;
  const std::vector<std::shared_ptr<Segment>> arenas_;
  ExtentAllocator allocator_;
  uint64_t reserved_bytes_ = 0;  // [0, reserved_bytes_) has memory
};

}  // namespace braid
