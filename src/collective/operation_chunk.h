// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "collective/operation.h"
#include "net/link.h"

namespace braid {

// A chunk of the operation, for a link; `unit` to `bytes` as in proto::ChunkHeader.
OutgoingChunk operation_chunk(const Operation& operation, std::shared_ptr<ChunkSource> source,
                              proto::Phase phase, uint32_t unit, uint32_t segment, uint32_t chunk,
                              uint64_t bytes);

}  // namespace braid
