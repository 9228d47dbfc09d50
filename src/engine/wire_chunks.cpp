// SPDX-License-Identifier: Apache-2.0
#include "engine/wire_chunks.h"

#include <cstring>

#include "base/assert.h"
#include "engine/operation_run.h"

namespace braid {

using proto::Phase;

WireChunks::WireChunks(OperationRun& run, uint32_t unit)
    : run_(&run), unit_(unit), chunks_max_(run.partition().chunks_max(unit)) {}

Encoding WireChunks::encoding_of(Phase phase, const ChunkPosition& position) const {
  if (run_->hop() == nullptr) return Encoding::Plain;
  const bool is_part =
      phase == Phase::Direct ||
      (phase == Phase::ReduceScatter && run_->segment_route(position.segment).parts_from.empty());
  return is_part ? Encoding::Part : Encoding::Sum;
}

uint32_t WireChunks::length_of(Phase phase, const ChunkPosition& position, UnitSums& sums) {
  const Hop* const hop = run_->hop();
  if (hop == nullptr) return static_cast<uint32_t>(position.extent.bytes);
  const Place place = place_of(phase, position);
  if (place.length != 0) return place.length;
  if (encoding_of(phase, position) == Encoding::Part && hop->has_exact_size())
    return static_cast<uint32_t>(
        hop->encoded_bytes_max(Encoding::Part, position.extent.bytes / sizeof(float)));
  encode(phase, position, sums);
  return place.length;
}

std::span<const uint8_t> WireChunks::encoded(Phase phase, const ChunkPosition& position,
                                             UnitSums& sums) {
  const Place place = place_of(phase, position);
  if (place.length == 0) encode(phase, position, sums);
  return {place.bytes, place.length};
}

void WireChunks::keep_sum(const ChunkPosition& position, std::span<const uint8_t> payload) {
  const Place place = place_of(Phase::AllGather, position);
  std::memcpy(place.bytes, payload.data(), payload.size());
  place.length = static_cast<uint32_t>(payload.size());
}

// Who sends a sum, or a direct part, keeps what the others decode.
void WireChunks::encode(Phase phase, const ChunkPosition& position, UnitSums& sums) {
  Hop& hop = *run_->hop();
  const Place place = place_of(phase, position);
  const Encoding encoding = encoding_of(phase, position);
  uint8_t* plain = run_->result(position.extent);
  if (phase == Phase::Direct) {
    plain = sums.own_part(position);
  } else if (encoding == Encoding::Part) {
    plain = run_->scratch(position.extent.bytes).data();
    sums.read_own(position, plain);
  }
  const auto values = elements(plain, position);
  place.length = hop.encode(encoding, position.extent, values, {place.bytes, encoded_stride_});
  BRAID_ASSERT(place.length != 0 && place.length <= encoded_stride_,
               "a hop encodes into its bounds");
  if (phase == Phase::ReduceScatter) return;
  const bool is_decoded = hop.decode(encoding, {place.bytes, place.length}, values);
  BRAID_ASSERT(is_decoded, "a hop decodes what it has encoded");
}

WireChunks::Place WireChunks::place_of(Phase phase, const ChunkPosition& position) {
  const uint64_t positions = uint64_t{run_->partition().segments()} * chunks_max_;
  if (encoded_ == nullptr) {
    encoded_stride_ = static_cast<uint32_t>(
        encoded_bytes_max(*run_->hop(), run_->partition().chunk_bytes_max(unit_) / sizeof(float)));
    encoded_ = std::make_unique_for_overwrite<uint8_t[]>(2 * positions * encoded_stride_);
    encoded_lengths_.resize(2 * positions);
  }
  const uint64_t index = (phase == Phase::AllGather ? positions : 0) + index_of(position);
  return {encoded_.get() + index * encoded_stride_, encoded_lengths_[index]};
}

const uint8_t* WireChunks::gathered(const ChunkPosition& position) {
  if (gathered_.empty()) gathered_.resize(uint64_t{run_->partition().segments()} * chunks_max_);
  auto& bytes = gathered_[index_of(position)];
  if (bytes == nullptr) {
    bytes = std::make_unique_for_overwrite<uint8_t[]>(position.extent.bytes);
    run_->read_input(position, bytes.get());
  }
  return bytes.get();
}

void WireChunks::on_settled(const ChunkPosition& position) {
  if (!gathered_.empty()) gathered_[index_of(position)].reset();
}

}  // namespace braid
