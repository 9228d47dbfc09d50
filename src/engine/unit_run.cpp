// SPDX-License-Identifier: Apache-2.0
#include "engine/unit_run.h"

#include <algorithm>

#include "base/assert.h"
#include "base/clock.h"
#include "engine/operation_run.h"

namespace braid {
using proto::Phase;

UnitRun::UnitRun(OperationRun& run, uint32_t unit)
    : run_(&run), unit_(unit), sums_(run, unit), wire_(run, unit) {}

UnitState UnitRun::state() const {
  if (!has_begun_) return UnitState::Waiting;
  if (sums_.parts_left() != 0) return UnitState::Reducing;
  if (sums_.steps_left() != 0) return UnitState::Stepping;
  return sums_.sums_left() != 0 ? UnitState::Gathering : UnitState::Finished;
}

bool UnitRun::waits_for_stream() const {
  const auto& segments = run_->route().begins_others;
  return !segments.empty() && std::all_of(segments.begin(), segments.end(), [&](uint32_t segment) {
    return run_->partition().segment(unit_, segment).bytes != 0;
  });
}

void UnitRun::begin() {
  BRAID_ASSERT(run_->is_ready() && !has_begun_, "a unit begins once, when the others are ready");
  has_begun_ = true;
  if (run_->host().timeline() != nullptr) begun_ns_ = SystemClock().now_ns();
  if (waits_for_stream() && state() != UnitState::Finished)
    stream_ = run_->host().take_stream(*run_);
  const uint32_t segments = run_->partition().segments();
  for (uint32_t i = 0; i < segments; ++i)
    begin_segment((run_->route().first_segment + i) % segments);
  finish_if_complete();
}

// Sends what starts here and what has come.
void UnitRun::begin_segment(uint32_t segment) {
  const SegmentRoute& route = run_->segment_route(segment);
  const bool starts_here = route.parts_from.empty() && !route.sum_from;
  const bool is_sent = route.is_direct() || route.parts_from.empty();
  if (!is_touched_ && !is_sent) return;
  const uint32_t chunks = run_->partition().chunks(unit_, segment);
  for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const ChunkPosition position{segment, chunk, run_->partition().chunk(unit_, segment, chunk)};
    if (route.is_direct()) send_own_part(position);
    if (route.part_to) {
      if (sums_.is_summed(position)) send_part(position);
    } else if (starts_here || sums_.is_final(position)) {
      send_sum(position);
    }
  }
}

void UnitRun::begin_if_ready() {
  is_touched_ = true;
  if (!has_begun_ && run_->is_ready()) begin();
}

// Which one of the parts that this node adds; nothing: none.
std::optional<size_t> UnitRun::part_from(NodeId from, const ChunkPosition& position) const {
  const auto& others = run_->segment_route(position.segment).parts_from;
  const auto source = std::find_if(others.begin(), others.end(),
                                   [&](uint32_t other) { return run_->member(other) == from; });
  if (source == others.end()) return std::nullopt;
  return static_cast<size_t>(source - others.begin());
}

ChunkVerdict UnitRun::take_part(NodeId from, const ChunkPosition& position, Encoding encoding,
                                std::span<const uint8_t> payload) {
  const auto part = part_from(from, position);
  if (!part) return ChunkVerdict::Malformed;
  if (sums_.has_part(position, *part)) return ChunkVerdict::Duplicate;
  if (!sums_.accept(position, *part, encoding, payload)) return ChunkVerdict::Malformed;
  on_part(position, *part, run_->hop() == nullptr ? payload.data() : nullptr);
  return ChunkVerdict::Taken;
}

ChunkIntake UnitRun::part_intake(NodeId from, const ChunkPosition& position) const {
  const auto part = part_from(from, position);
  if (!part || sums_.has_part(position, *part) || !sums_.may_fold(position, *part)) return {};
  return {ChunkIntake::How::Fold};
}

void UnitRun::on_folded(const ChunkPosition& position) {
  run_->host().on_bytes_reduced(position.extent.bytes);
  on_part(position, 0, nullptr);
}

// A part has come; `bytes` as for UnitSums::add().
void UnitRun::on_part(const ChunkPosition& position, size_t part, const uint8_t* bytes) {
  begin_if_ready();
  sums_.add(position, part, bytes);
  if (sums_.is_summed(position)) on_summed(position);
  finish_if_complete();
}

// All that this node had to add is added: on goes the part or, at the owner, the sum.
void UnitRun::on_summed(const ChunkPosition& position) {
  if (run_->segment_route(position.segment).part_to) {
    if (has_begun_) send_part(position);
    return;
  }
  OwnerStep* const step = run_->step();
  if (step != nullptr &&
      step->apply(run_->operation(), position.extent, run_->result(position.extent),
                  {run_->listener(), unit_, position.segment, position.chunk}) ==
          StepOutcome::Later)
    return;
  on_final(position);
}

void UnitRun::on_final(const ChunkPosition& position) {
  sums_.end_step(position);
  // What starts here was sent before it was made.
  if (has_begun_ && !run_->segment_route(position.segment).parts_from.empty()) send_sum(position);
  finish_if_complete();
}

// Taken: it may come now.
ChunkVerdict UnitRun::look_at_sum(NodeId from, const ChunkPosition& position) const {
  const SegmentRoute& route = run_->segment_route(position.segment);
  if (!route.sum_from || run_->member(*route.sum_from) != from) return ChunkVerdict::Malformed;
  if (sums_.is_final(position)) return ChunkVerdict::Duplicate;
  // A sum exists only after this node has given its part, with a Hop encoded: what comes earlier is
  // none.
  if (route.part_to && !(has_begun_ && sums_.is_summed(position))) return ChunkVerdict::Malformed;
  return ChunkVerdict::Taken;
}

ChunkVerdict UnitRun::take_sum(NodeId from, const ChunkPosition& position,
                               std::span<const uint8_t> payload) {
  const ChunkVerdict verdict = look_at_sum(from, position);
  if (verdict != ChunkVerdict::Taken) return verdict;
  if (Hop* const hop = run_->hop(); hop != nullptr) {
    const SegmentRoute& route = run_->segment_route(position.segment);
    if (route.part_to && !wire_.is_encoded(Phase::ReduceScatter, position))
      return ChunkVerdict::Malformed;
    const auto out = elements(run_->result(position.extent), position);
    if (!hop->decode(Encoding::Sum, payload, out)) return ChunkVerdict::Malformed;
    if (!route.sum_to.empty()) wire_.keep_sum(position, payload);
  } else {
    if (payload.size() != position.extent.bytes) return ChunkVerdict::Malformed;
    run_->store(position, payload.data());
    run_->host().on_bytes_copied(position.extent.bytes);
  }
  on_stored(position);
  return ChunkVerdict::Taken;
}

ChunkIntake UnitRun::sum_intake(NodeId from, const ChunkPosition& position) const {
  if (look_at_sum(from, position) != ChunkVerdict::Taken) return {};
  uint8_t* const place = run_->place_of(position);
  if (place == nullptr) return {};
  return {ChunkIntake::How::Store, place};
}

void UnitRun::on_stored(const ChunkPosition& position) {
  begin_if_ready();
  sums_.end_sum(position);
  if (has_begun_) send_sum(position);
  finish_if_complete();
}

// Makes a chunk that starts here; where this node owns it, what it has made is the sum.
void UnitRun::prepare(const ChunkPosition& position) {
  if (!sums_.make_own(position)) return;
  if (!run_->is_reduced()) return on_final(position);
  const SegmentRoute& route = run_->segment_route(position.segment);
  if (run_->hop() == nullptr && route.is_owner() && !route.is_direct()) on_summed(position);
}

// A direct operation's. With a Hop the bytes are encoded now, for the encoded part is what is added
// here, too.
void UnitRun::send_own_part(const ChunkPosition& position) {
  sums_.read_own(position, sums_.own_part(position));
  const uint64_t bytes = run_->hop() == nullptr
                             ? position.extent.bytes
                             : wire_.encoded(Phase::Direct, position, sums_).size();
  for (const uint32_t to : run_->segment_route(position.segment).own_part_to)
    run_->submit(*this, Phase::Direct, wire_.encoding_of(Phase::Direct, position), position, to,
                 static_cast<uint32_t>(bytes));
}

void UnitRun::send_part(const ChunkPosition& position) {
  run_->submit(*this, Phase::ReduceScatter, wire_.encoding_of(Phase::ReduceScatter, position),
               position, *run_->segment_route(position.segment).part_to,
               wire_.length_of(Phase::ReduceScatter, position, sums_));
}

void UnitRun::send_sum(const ChunkPosition& position) {
  const auto& receivers = run_->segment_route(position.segment).sum_to;
  if (receivers.empty()) return;
  const uint32_t bytes = wire_.length_of(Phase::AllGather, position, sums_);
  const Encoding encoding = wire_.encoding_of(Phase::AllGather, position);
  for (const uint32_t to : receivers)
    run_->submit(*this, Phase::AllGather, encoding, position, to, bytes);
}

// Bytes that start here are made when a flow takes them, not earlier: then they are still in the
// cache when they are sent.
std::span<const uint8_t> UnitRun::bytes_to_send(Phase phase, const ChunkPosition& position) {
  if (run_->hop() != nullptr) return wire_.encoded(phase, position, sums_);
  if (phase == Phase::Direct) return {sums_.own_part(position), position.extent.bytes};
  if (const uint8_t* input = run_->input_to_send(phase, position))
    return {input, position.extent.bytes};
  if (run_->operation().exchange != nullptr)
    return {wire_.gathered(position), position.extent.bytes};
  const SegmentRoute& route = run_->segment_route(position.segment);
  if (route.parts_from.empty() && (phase == Phase::ReduceScatter || route.is_owner()))
    prepare(position);
  return {run_->result(position.extent), position.extent.bytes};
}

bool UnitRun::work(uint64_t& bytes_left) {
  if (!has_begun_) begin();
  const uint32_t own = run_->route().place;
  const uint32_t chunks = run_->partition().chunks(unit_, own);
  for (; next_work_ < chunks && bytes_left != 0; ++next_work_) {
    const ChunkPosition position{own, next_work_, run_->partition().chunk(unit_, own, next_work_)};
    prepare(position);
    bytes_left -= std::min(bytes_left, position.extent.bytes);
  }
  return next_work_ == chunks;
}

void UnitRun::finish_if_complete() {
  if (is_finished_ || state() != UnitState::Finished) return;
  is_finished_ = true;
  if (!run_->operation().is_direct) sums_.drop_aside();
  if (run_->host().timeline() != nullptr) note_unit();
  run_->on_unit_finished(stream_);
}

void UnitRun::note_unit() const {
  TimelineEvent event = span_until_now(*run_, unit_, SpanKind::Unit, begun_ns_);
  if (stream_) event.slot = static_cast<uint16_t>(std::min(*stream_, TimelineEvent::kSlotMax));
  for (uint32_t segment = 0; segment < run_->partition().segments(); ++segment)
    event.bytes += run_->partition().segment(unit_, segment).bytes;
  run_->host().timeline()->record(event);
}

}  // namespace braid
