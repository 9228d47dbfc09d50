// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "engine/splits.h"
#include "ipc/shared_memory.h"
#include "ipc/user_quotas.h"
#include "messages/signature.h"

namespace braid {

// What a rank gives and gets in a gather, a scatter or an all-to-all, as its submission says. The
// table of an all-to-all is copied out of the arena at `table`: its trainer may change it at any
// time. InvalidArgument: no table there, or more than can be mapped. `charge`: what they take
// counts there while anybody has them (BufferBytes).
Result<std::shared_ptr<const Splits>> submitted_splits(const Signature& signature, uint32_t rank,
                                                       uint32_t world_size,
                                                       const SharedMemory& arena, uint64_t table,
                                                       UserCharge charge);

// What splits take for each rank of the world, with what a NodeExchange keeps of them: two counts,
// and up to eight sums.
inline constexpr uint64_t kSplitsCostBytes = 80;

// Bytes of the rank's input.
uint64_t input_bytes_of(const Splits& splits, DataType dtype);

}  // namespace braid
