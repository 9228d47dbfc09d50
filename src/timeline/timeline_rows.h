// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "timeline/node_timeline.h"

namespace braid {

// The columns of a span's row in JSON, in their order.
using SubmitRow = std::array<int64_t, 5>;
using OperationRow = std::array<int64_t, 8>;
using UnfinishedRow = std::array<int64_t, 7>;
using UnitRow = std::array<int64_t, 8>;
using ReduceRow = std::array<int64_t, 7>;
using ChunkRow = std::array<int64_t, 12>;
using WorkRow = std::array<int64_t, 7>;

SubmitRow row_of(const NodeTimeline::Submit& span);
OperationRow row_of(const NodeTimeline::Operation& span);
UnfinishedRow row_of(const NodeTimeline::Unfinished& span);
UnitRow row_of(const NodeTimeline::Unit& span);
ReduceRow row_of(const NodeTimeline::Reduce& span);
ChunkRow row_of(const NodeTimeline::Chunk& span);
WorkRow row_of(const NodeTimeline::Work& span);

// Numbers beyond a field's range are refused: false.
bool take_row(const SubmitRow& row, NodeTimeline::Submit& span);
bool take_row(const OperationRow& row, NodeTimeline::Operation& span);
bool take_row(const UnfinishedRow& row, NodeTimeline::Unfinished& span);
bool take_row(const UnitRow& row, NodeTimeline::Unit& span);
bool take_row(const ReduceRow& row, NodeTimeline::Reduce& span);
bool take_row(const ChunkRow& row, NodeTimeline::Chunk& span);
bool take_row(const WorkRow& row, NodeTimeline::Work& span);

}  // namespace braid
