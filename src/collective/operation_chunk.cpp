// SPDX-License-Identifier: Apache-2.0
#include "collective/operation_chunk.h"

namespace braid {

OutgoingChunk operation_chunk(const Operation& operation, std::shared_ptr<ChunkSource> source,
                              proto::Phase phase, uint32_t unit, uint32_t segment, uint32_t chunk,
                              uint64_t bytes) {
  OutgoingChunk outgoing;
  outgoing.header.magic = proto::kChunkMagic;
  outgoing.header.version = proto::kChunkVersion;
  outgoing.header.phase = static_cast<uint8_t>(phase);
  outgoing.header.unit = unit;
  outgoing.header.job_key = operation.key.job_key;
  outgoing.header.tensor = operation.key.tensor;
  outgoing.header.step = operation.key.step;
  outgoing.header.segment = segment;
  outgoing.header.chunk = chunk;
  outgoing.header.bytes = static_cast<uint32_t>(bytes);
  outgoing.source = std::move(source);
  outgoing.urgency = operation.urgency;
  return outgoing;
}

}  // namespace braid
