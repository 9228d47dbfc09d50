// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "device/device_context.h"
#include "device/device_stream.h"
#include "device/staging_ring.h"
#include "device/words.h"

namespace braid::client {

// What two levels have in memory: words, and device memory between NCCL and the job across.
// Functions but the words' are for one thread at a time, in the context's scope.
class LevelMemory {
 public:
  static Status make(const CudaDriver& driver, std::unique_ptr<LevelMemory>& memory);

  // By streams: the local level's part before the network of the operations up to this one is
  // done; and all of them is.
  const Word& reduced() const { return reduced_; }
  const Word& gathered() const { return gathered_; }

  // Device memory which `writer` may fill from then on, until the lane has copied it: that is its
  // piece `number`, up to which `staged` then comes.
  Status place_scratch(uint64_t bytes, uint32_t number, const Word& staged, DeviceStream& writer,
                       CUdeviceptr& scratch);
  // Nothing of it is used any more.
  void release();

 private:
  explicit LevelMemory(const CudaDriver& driver);

  const CudaDriver& driver_;
  std::unique_ptr<RegisteredMemory> registered_;
  Word reduced_;
  Word gathered_;
  std::vector<CUdeviceptr> allocated_;
  StagingRing scratch_;
};

}  // namespace braid::client
