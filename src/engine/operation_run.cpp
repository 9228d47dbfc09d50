// SPDX-License-Identifier: Apache-2.0
#include "engine/operation_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/assert.h"
#include "base/checked.h"

namespace braid {
namespace {

// Inputs and result together: what is more has left the caches before a trainer reads it. Measured
// with the reading, on 32 MiB of cache: at 12 MB streaming takes 1.07 of the time, at 24 MB 0.82.
constexpr uint64_t kStreamedBytesMin = 16 << 20;

}  // namespace

using proto::Phase;

OperationRun::OperationRun(Operation operation, const EngineOptions& options, OperationHost& host)
    : operation_(std::move(operation)),
      route_(route_of(operation_)),
      partition_(operation_,
                 operation_.unit_bytes == 0 ? options.unit_bytes : operation_.unit_bytes,
                 operation_.chunk_bytes == 0 ? options.chunk_bytes : operation_.chunk_bytes),
      io_loops_(options.io_loops),
      host_(&host),
      inputs_(operation_),
      contribution_(operation_.contribution == nullptr ? inputs_ : *operation_.contribution) {
  const Ring& ring = *operation_.ring;
  BRAID_ASSERT(route_.segments.size() == partition_.segments(), "the route has the ring's nodes");
  BRAID_ASSERT(ring.nodes == 1 || ring.members.size() == ring.nodes, "the ring's nodes are known");
  BRAID_ASSERT(operation_.collective == Collective::AllReduce ||
                   (operation_.route == nullptr && !operation_.is_direct),
               "other routes than around the ring are for all-reduces");
  BRAID_ASSERT(!operation_.is_direct || is_early(), "a direct operation is early");
  BRAID_ASSERT(
      operation_.fixed_owners == nullptr || (operation_.collective == Collective::AllReduce &&
                                             !is_early() && one_owner_each(route_, ring.nodes)),
      "fixed owners are for all-reduces that are not early, and each node is one");
  const bool is_root =
      operation_.collective == Collective::Broadcast && operation_.root_node == ring.self;
  BRAID_ASSERT((operation_.exchange != nullptr) == is_exchange(operation_.collective),
               "an exchange says what goes where");
  BRAID_ASSERT(operation_.hop == nullptr || (operation_.collective == Collective::AllReduce &&
                                             !is_local() && operation_.dtype == DataType::Float32 &&
                                             (operation_.reduction == Reduction::Sum ||
                                              operation_.reduction == Reduction::Average)),
               "what travels between nodes as something else are sums of float32");
  BRAID_ASSERT(operation_.contribution != nullptr || operation_.exchange != nullptr ||
                   (operation_.inputs.size() == ring.ranks_of_node[ring.self] &&
                    (!is_root || operation_.root_local_input < operation_.inputs.size())),
               "every local rank has an input, and the root is one of them");
  if (operation_.owner_step != nullptr) {
    step_ = operation_.owner_step.get();
  } else if (operation_.reduction == Reduction::Average && operation_.hop == nullptr) {
    step_ = &average_;
  }
  const uint64_t bytes = operation_.count * element_bytes(operation_.dtype);
  if (is_local() && step_ == nullptr && bytes >= kStreamedBytesMin / (operation_.inputs.size() + 1))
    store_ = Store::Streamed;
  const uint32_t loop_of_first = is_early() ? 0 : loop_of_unit(operation_.key, 0, io_loops_);
  first_unit_ = (options.io_loop + io_loops_ - loop_of_first) % io_loops_;
  if (first_unit_ < partition_.units())
    units_.reserve((partition_.units() - first_unit_ - 1) / io_loops_ + 1);
  for (uint64_t unit = first_unit_; unit < partition_.units(); unit += io_loops_) {
    units_.emplace_back(*this, static_cast<uint32_t>(unit));
    count_sends(static_cast<uint32_t>(unit));
  }
  units_left_ = units_.size();
  carried_per_byte_ = carried_per_byte();
}

// An all-gather or a reduce-scatter is one half of an all-reduce around the ring, which brings
// 2(n − 1)/n of its bytes to each node (Patarasuk and Yuan, JPDC 2009, section 3).
double OperationRun::carried_per_byte() const {
  if (is_local()) return 0;
  if (operation_.collective != Collective::AllReduce)
    return operation_.ring->nodes / (2.0 * (operation_.ring->nodes - 1));
  uint64_t all = 0;
  uint64_t brought = 0;
  for (uint32_t unit = 0; unit < partition_.units(); ++unit) {
    for (uint32_t segment = 0; segment < partition_.segments(); ++segment) {
      const SegmentRoute& route = route_.segments[segment];
      const uint64_t bytes = partition_.segment(unit, segment).bytes;
      all += bytes;
      brought += bytes * (route.parts_from.size() + (route.sum_from ? 1 : 0));
    }
  }
  return brought == 0 ? 0 : static_cast<double>(all) / static_cast<double>(brought);
}

void OperationRun::count_carried(uint64_t bytes) {
  const auto carried = [this] {
    return static_cast<uint64_t>(
        std::llround(static_cast<double>(bytes_taken_) * carried_per_byte_));
  };
  const uint64_t before = carried();
  bytes_taken_ += bytes;
  host_->on_bytes_carried(carried() - before);
}

bool OperationRun::is_reduced() const {
  return operation_.collective == Collective::AllReduce ||
         operation_.collective == Collective::ReduceScatter;
}

void OperationRun::count_sends(uint32_t unit) {
  for (uint32_t segment = 0; segment < partition_.segments(); ++segment) {
    const SegmentRoute& route = route_.segments[segment];
    const uint32_t chunks = partition_.chunks(unit, segment);
    sends_left_ += chunks * (route.sum_to.size() + (route.part_to ? 1 : 0));
  }
}

// Where no result comes back around the ring, only acknowledgements say that the others have what
// they need. A sum that comes says that this node's part is in it: if the part
// is sent again after that, the input may hold other bytes, and the receiver drops them.
bool OperationRun::needs_acknowledgements() const {
  return !route_.returns_sums || (operation_.collective == Collective::Broadcast &&
                                  operation_.root_node == operation_.ring->self);
}

const uint8_t* OperationRun::input_to_send(Phase phase, const ChunkPosition& position) const {
  if (phase != Phase::ReduceScatter || !route_.segments[position.segment].parts_from.empty() ||
      operation_.hop != nullptr)
    return nullptr;
  if (operation_.exchange != nullptr)
    return operation_.exchange->find(position.segment - operation_.ring->nodes, position.extent);
  return contribution_.find(position.extent);
}

void OperationRun::copy_own(const ChunkPosition& position) {
  if (operation_.exchange != nullptr) return operation_.exchange->copy_own(position.extent);
  contribution_.copy(position.extent, result(position.extent));
}

void OperationRun::store(const ChunkPosition& position, const uint8_t* bytes) {
  if (operation_.exchange != nullptr)
    return operation_.exchange->write(position.segment, position.extent, bytes);
  std::memcpy(result(position.extent), bytes, position.extent.bytes);
}

uint8_t* OperationRun::place_of(const ChunkPosition& position) {
  return operation_.exchange != nullptr
             ? operation_.exchange->place_of(position.segment, position.extent)
             : result(position.extent);
}

void OperationRun::read_input(const ChunkPosition& position, uint8_t* out) const {
  operation_.exchange->read(position.segment - operation_.ring->nodes, position.extent, out);
}

UnitRun* OperationRun::find_unit(uint32_t unit) {
  if (unit < first_unit_ || (unit - first_unit_) % io_loops_ != 0) return nullptr;
  const size_t index = (unit - first_unit_) / io_loops_;
  return index < units_.size() ? &units_[index] : nullptr;
}

// What belongs to something else is not taken, and the neighbours' comparison ends the job.
bool OperationRun::is_of_this(const proto::ChunkHeader& header) const {
  if (static_cast<Phase>(header.phase) != Phase::AllGather &&
      header.signature != operation_.signature)
    return false;
  return (static_cast<Encoding>(header.encoding) == Encoding::Plain) == (operation_.hop == nullptr);
}

ChunkVerdict OperationRun::accept(NodeId from, const proto::ChunkHeader& header,
                                  std::span<const uint8_t> payload) {
  if (payload.size() != header.bytes || !is_of_this(header)) return ChunkVerdict::Malformed;
  if (operation_.is_direct) return accept_direct(from, header, payload);
  const auto chunk = find_incoming(from, header);
  if (!chunk) return ChunkVerdict::Malformed;
  if (chunk->is_sum) return chunk->unit->take_sum(from, chunk->position, payload);
  return chunk->unit->take_part(from, chunk->position, static_cast<Encoding>(header.encoding),
                                payload);
}

ChunkIntake OperationRun::intake(NodeId from, const proto::ChunkHeader& header) {
  if (operation_.hop != nullptr || operation_.is_direct || !is_of_this(header)) return {};
  const auto chunk = find_incoming(from, header);
  if (!chunk || header.bytes != chunk->position.extent.bytes) return {};
  return chunk->is_sum ? chunk->unit->sum_intake(from, chunk->position)
                       : chunk->unit->part_intake(from, chunk->position);
}

void OperationRun::fold(NodeId from, const proto::ChunkHeader& header, uint32_t offset,
                        std::span<const uint8_t> piece) {
  BRAID_ASSERT(intake(from, header).how == ChunkIntake::How::Fold, "what is folded may be folded");
  const auto chunk = find_incoming(from, header);
  chunk->unit->fold(chunk->position, offset, piece);
}

void OperationRun::on_taken(NodeId from, const proto::ChunkHeader& header) {
  BRAID_ASSERT(intake(from, header).how != ChunkIntake::How::Whole, "what was taken in may be");
  const auto chunk = find_incoming(from, header);
  if (chunk->is_sum) return chunk->unit->on_stored(chunk->position);
  chunk->unit->on_folded(chunk->position);
}

// Not a direct operation's; nothing: there is no such chunk.
std::optional<OperationRun::IncomingChunk> OperationRun::find_incoming(
    NodeId from, const proto::ChunkHeader& header) {
  UnitRun* const unit = find_unit(header.unit);
  const auto segment = incoming_segment(from, header);
  if (unit == nullptr || !segment || header.chunk >= partition_.chunks(header.unit, *segment))
    return std::nullopt;
  const ChunkPosition position = position_of(header.unit, *segment, header.chunk);
  // The owner of an exchange's bytes keeps them as they come.
  if (operation_.exchange != nullptr) return IncomingChunk{unit, position, true};
  switch (static_cast<Phase>(header.phase)) {
    case Phase::ReduceScatter:
      return IncomingChunk{unit, position, false};
    case Phase::AllGather:
      if (static_cast<Encoding>(header.encoding) == Encoding::Part) break;
      return IncomingChunk{unit, position, true};
    case Phase::Direct:
      break;
  }
  return std::nullopt;
}

// Which segment of this node a chunk belongs to; nothing: none.
std::optional<uint32_t> OperationRun::incoming_segment(NodeId from,
                                                       const proto::ChunkHeader& header) const {
  if (operation_.exchange == nullptr) {
    return header.segment < partition_.segments() ? std::optional(header.segment) : std::nullopt;
  }
  const auto& members = operation_.ring->members;
  const auto source = std::find(members.begin(), members.end(), from);
  if (static_cast<Phase>(header.phase) != Phase::ReduceScatter ||
      header.segment != operation_.ring->self || source == members.end())
    return std::nullopt;
  return static_cast<uint32_t>(source - members.begin());
}

ChunkVerdict OperationRun::accept_direct(NodeId from, const proto::ChunkHeader& header,
                                         std::span<const uint8_t> payload) {
  if (header.phase != static_cast<uint8_t>(Phase::Direct) || units_.empty() || header.unit != 0 ||
      header.chunk >= partition_.chunks(0, 0) || header.segment >= operation_.ring->nodes ||
      member(header.segment) != from)
    return ChunkVerdict::Malformed;
  const auto encoding = static_cast<Encoding>(header.encoding);
  if (encoding == Encoding::Sum) return ChunkVerdict::Malformed;
  return units_.front().take_part(from, position_of(0, 0, header.chunk), encoding, payload);
}

std::span<uint8_t> OperationRun::scratch(uint64_t bytes) {
  scratch_.resize(std::max<uint64_t>(scratch_.size(), divide_up(bytes, sizeof(float))));
  return {reinterpret_cast<uint8_t*>(scratch_.data()), bytes};
}

void OperationRun::submit(const UnitRun& unit, Phase phase, Encoding encoding,
                          const ChunkPosition& position, uint32_t to, uint32_t bytes) {
  Link* const link = links_.find(host_->links(), to, member(to));
  if (link == nullptr)
    return;  // never acknowledged then: the operation stays until the job layer aborts it
  const bool is_whole = phase == Phase::Direct;
  OutgoingChunk outgoing;
  outgoing.header.magic = proto::kChunkMagic;
  outgoing.header.version = proto::kChunkVersion;
  outgoing.header.phase = static_cast<uint8_t>(phase);
  outgoing.header.unit = unit.number();
  outgoing.header.job_key = operation_.key.job_key;
  outgoing.header.tensor = operation_.key.tensor;
  outgoing.header.step = operation_.key.step;
  const uint32_t segment = is_whole                         ? route_.place
                           : operation_.exchange != nullptr ? to
                                                            : position.segment;
  outgoing.header.segment = static_cast<uint16_t>(segment);
  outgoing.header.encoding = static_cast<uint8_t>(encoding);
  outgoing.header.ack_time = static_cast<uint8_t>(ack_time(phase));
  outgoing.header.chunk = position.chunk;
  outgoing.header.bytes = bytes;
  if (phase != Phase::AllGather) outgoing.header.signature = operation_.signature;
  outgoing.source = shared_from_this();
  outgoing.urgency = operation_.urgency;
  link->submit(std::move(outgoing));
}

// Where is_done() needs none, they only say that memory is free; a direct operation's is its own.
proto::AckTime OperationRun::ack_time(Phase phase) const {
  if (phase == Phase::Direct) return proto::AckTime::Late;
  return needs_acknowledgements() ? proto::AckTime::AtOnce : proto::AckTime::Soon;
}

std::span<const uint8_t> OperationRun::payload_of(const OutgoingChunk& chunk) {
  const proto::ChunkHeader& header = chunk.header;
  const auto phase = static_cast<Phase>(header.phase);
  if (phase == Phase::Direct && !is_aborted_)
    return units_.front().bytes_to_send(phase, position_of(0, 0, header.chunk));
  if (is_abandoned()) return {};
  return find_unit(header.unit)->bytes_to_send(phase, position_of(header));
}

void OperationRun::on_chunk_settled(const OutgoingChunk& chunk, bool acknowledged) {
  const proto::ChunkHeader& header = chunk.header;
  const auto phase = static_cast<Phase>(header.phase);
  if (is_abandoned() || !acknowledged || phase == Phase::Direct) return;
  BRAID_ASSERT(sends_left_ != 0, "a chunk was settled twice");
  --sends_left_;
  const ChunkPosition position = position_of(header);
  find_unit(header.unit)->on_settled(position);
  if (is_done()) host_->on_progress(*this);
}

void OperationRun::on_step_ended(uint32_t unit, uint32_t segment, uint32_t chunk) {
  if (!is_abandoned()) find_unit(unit)->on_final(position_of(unit, segment, chunk));
}

void OperationRun::on_unit_finished(std::optional<uint32_t> stream) {
  --units_left_;
  host_->on_unit_finished(*this, stream);
  if (is_done()) host_->on_progress(*this);
}

bool OperationRun::is_done() const {
  return is_ready_ && units_left_ == 0 && (!needs_acknowledgements() || sends_left_ == 0);
}

void OperationRun::retire() {
  host_ = nullptr;
  operation_.memory.reset();
}

void OperationRun::abandon() {
  host_ = nullptr;
  is_aborted_ = true;
}

bool OperationRun::work(uint64_t& bytes_left) {
  bool has_begun_one = false;  // whose chunks to all nodes are enough for a call
  while (work_unit_ < units_.size() && !(has_begun_one && !is_local())) {
    UnitRun& unit = units_[work_unit_];
    has_begun_one = !unit.has_begun();
    if (!unit.work(bytes_left)) return false;
    ++work_unit_;
  }
  return work_unit_ == units_.size();
}

}  // namespace braid
