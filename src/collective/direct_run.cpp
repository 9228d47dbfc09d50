// SPDX-License-Identifier: Apache-2.0
#include "collective/direct_run.h"

#include <cstring>

#include "base/assert.h"
#include "base/checked.h"
#include "collective/operation_chunk.h"
#include "collective/reduce_kernels.h"

namespace braid {
namespace {

constexpr uint64_t kPartAlignment = 64;

}  // namespace

DirectRun::DirectRun(Operation operation)
    : operation_(std::move(operation)),
      ring_(operation_.ring),
      bytes_(operation_.count * element_bytes(operation_.dtype)),
      stride_(round_up(bytes_, kPartAlignment)),
      step_(operation_),
      parts_(std::make_unique_for_overwrite<uint8_t[]>(stride_ * ring_->nodes)),
      has_part_(ring_->nodes, false),
      missing_(ring_->nodes) {
  BRAID_ASSERT(operation_.collective == Collective::AllReduce && bytes_ != 0,
               "a direct operation is an all-reduce of something");
  BRAID_ASSERT(ring_->members.size() == ring_->nodes, "the ring's nodes are known");
}

void DirectRun::begin(OperationHost& host) {
  BRAID_ASSERT(!has_begun_, "a run begins once");
  has_begun_ = true;
  step_.reduce({0, bytes_}, nullptr);
  host.on_bytes_reduced(bytes_);
  std::memcpy(part(ring_->self), operation_.result, bytes_);
  has_part_[ring_->self] = true;
  --missing_;

  const OutgoingChunk outgoing =
      operation_chunk(operation_, shared_from_this(), proto::Phase::Direct, operation_.signature,
                      ring_->self, 0, bytes_);
  // The successor first, so that not all nodes send to the same one at once.
  for (uint32_t distance = 1; distance < ring_->nodes; ++distance) {
    Link* link = host.find_link(ring_->members[(ring_->self + distance) % ring_->nodes]);
    // Lost: the job layer is about to abort the job.
    if (link != nullptr) link->submit(outgoing);
  }
}

ChunkVerdict DirectRun::accept(NodeId from, const proto::ChunkHeader& header,
                               std::span<const uint8_t> payload) {
  const uint32_t place = header.segment;
  if (place >= ring_->nodes || place == ring_->self || ring_->members[place] != from ||
      header.unit != operation_.signature || header.chunk != 0 || payload.size() != bytes_)
    return ChunkVerdict::Malformed;
  if (has_part_[place]) return ChunkVerdict::Duplicate;
  std::memcpy(part(place), payload.data(), bytes_);
  has_part_[place] = true;
  if (--missing_ == 0) fold();
  return ChunkVerdict::Taken;
}

void DirectRun::fold() {
  std::vector<const uint8_t*> operands;
  for (uint32_t place = 0; place < ring_->nodes; ++place) operands.push_back(part(place));
  reduce_all(operation_.dtype, operation_.reduction, operands, operation_.count, operation_.result);
  step_.finish({0, bytes_});
}

void DirectRun::abandon() {
  is_abandoned_ = true;
  finish();
}

std::span<const uint8_t> DirectRun::chunk_bytes(const OutgoingChunk& /*chunk*/) {
  if (is_abandoned_) return {};
  return {part(ring_->self), bytes_};
}

void DirectRun::on_chunk_settled(const OutgoingChunk& /*chunk*/, bool /*acknowledged*/) {}

}  // namespace braid
