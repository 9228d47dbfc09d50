// SPDX-License-Identifier: Apache-2.0
#include "timeline/timeline_rows.h"

#include <utility>

namespace braid {
namespace {

int64_t number(uint64_t value) { return static_cast<int64_t>(value); }

template <typename Field>
bool take(int64_t value, Field& field) {
  if (!std::in_range<Field>(value)) return false;
  field = static_cast<Field>(value);
  return true;
}

bool take(int64_t value, bool& field) {
  field = value != 0;
  return value == 0 || value == 1;
}

template <size_t N, typename... Fields>
bool take_all(const std::array<int64_t, N>& row, Fields&... fields) {
  static_assert(sizeof...(fields) == N);
  size_t column = 0;
  return (take(row[column++], fields) && ...);
}

}  // namespace

SubmitRow row_of(const NodeTimeline::Submit& span) {
  return {span.rank, span.tensor, number(span.step), number(span.at), span.is_planned};
}

OperationRow row_of(const NodeTimeline::Operation& span) {
  return {span.tensor,      number(span.step),  number(span.begin), number(span.go),
          number(span.end), number(span.bytes), span.tensors,       span.plan};
}

UnfinishedRow row_of(const NodeTimeline::Unfinished& span) {
  return {span.tensor,          number(span.step), number(span.begin), span.go,
          number(span.missing), span.tensors,      span.plan};
}

UnitRow row_of(const NodeTimeline::Unit& span) {
  return {span.io_loop, span.stream,        span.tensor,      number(span.step),
          span.unit,    number(span.begin), number(span.end), number(span.bytes)};
}

ReduceRow row_of(const NodeTimeline::Reduce& span) {
  return {span.io_loop,       span.tensor,      number(span.step), span.unit,
          number(span.begin), number(span.end), number(span.bytes)};
}

ChunkRow row_of(const NodeTimeline::Chunk& span) {
  return {span.io_loop,     span.flow,          span.peer,   span.rail,
          span.tensor,      number(span.step),  span.unit,   number(span.begin),
          number(span.end), number(span.bytes), span.is_sum, span.is_resent};
}

WorkRow row_of(const NodeTimeline::Work& span) {
  return {span.rank,          span.work,        span.item,   span.owner,
          number(span.begin), number(span.end), span.is_wait};
}

bool take_row(const SubmitRow& row, NodeTimeline::Submit& span) {
  return take_all(row, span.rank, span.tensor, span.step, span.at, span.is_planned);
}

bool take_row(const OperationRow& row, NodeTimeline::Operation& span) {
  return take_all(row, span.tensor, span.step, span.begin, span.go, span.end, span.bytes,
                  span.tensors, span.plan) &&
         span.begin <= span.go && span.go <= span.end;
}

bool take_row(const UnfinishedRow& row, NodeTimeline::Unfinished& span) {
  return take_all(row, span.tensor, span.step, span.begin, span.go, span.missing, span.tensors,
                  span.plan);
}

bool take_row(const UnitRow& row, NodeTimeline::Unit& span) {
  return take_all(row, span.io_loop, span.stream, span.tensor, span.step, span.unit, span.begin,
                  span.end, span.bytes) &&
         span.begin <= span.end;
}

bool take_row(const ReduceRow& row, NodeTimeline::Reduce& span) {
  return take_all(row, span.io_loop, span.tensor, span.step, span.unit, span.begin, span.end,
                  span.bytes) &&
         span.begin <= span.end;
}

bool take_row(const ChunkRow& row, NodeTimeline::Chunk& span) {
  return take_all(row, span.io_loop, span.flow, span.peer, span.rail, span.tensor, span.step,
                  span.unit, span.begin, span.end, span.bytes, span.is_sum, span.is_resent) &&
         span.begin <= span.end;
}

bool take_row(const WorkRow& row, NodeTimeline::Work& span) {
  return take_all(row, span.rank, span.work, span.item, span.owner, span.begin, span.end,
                  span.is_wait) &&
         span.begin <= span.end;
}

}  // namespace braid
