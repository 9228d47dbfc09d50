// SPDX-License-Identifier: Apache-2.0
#include "job/submitted_message.h"

#include "base/checked.h"
#include "proto/types.h"

namespace braid {
namespace {

Status find_bytes(const proto::SubmitEntry& entry, InputArenas& arenas, MessageEnd& end) {
  const SharedMemory* const arena = arenas.find(entry.arena);
  if (arena == nullptr) {
    return make_status(StatusCode::NotFound,
                       "submitted a send in arena {}; it has registered {}, counted from 0 "
                       "(RegisterMemory)",
                       entry.arena, arenas.all()->size());
  }
  if (!range_fits(entry.offset, entry.count, arena->size())) {
    return make_status(StatusCode::InvalidArgument,
                       "the {} bytes of a send to rank {}, tag {}, at {} are not inside the arena "
                       "of {} bytes",
                       entry.count, entry.root, entry.step, entry.offset, arena->size());
  }
  end.input = arena->data() + entry.offset;
  if (entry.count == 0) return Status::ok();
  return arenas.count_missing_pages(entry.arena, entry.offset, entry.count);
}

}  // namespace

Result<MessageEnd> read_message(const proto::SubmitEntry& entry, uint32_t rank, uint32_t world_size,
                                InputArenas& arenas) {
  const bool is_send = static_cast<proto::SubmitKind>(entry.kind) == proto::SubmitKind::Send;
  const bool is_from_any = !is_send && entry.root == proto::kAnyRank;
  if (!is_from_any && (entry.root >= world_size || entry.root == rank)) {
    return make_status(StatusCode::InvalidArgument,
                       "a {} rank {}, tag {}: the other rank of a message is one below {}, and "
                       "not the own one",
                       is_send ? "send to" : "receive from", entry.root, entry.step, world_size);
  }
  if (entry.count > kTensorBytesMax) {
    return make_status(StatusCode::InvalidArgument,
                       "a message of {} bytes is too large: {} are the most", entry.count,
                       kTensorBytesMax);
  }
  MessageEnd end;
  end.ticket = entry.ticket;
  end.peer = entry.root;
  end.tag = entry.step;
  end.bytes = entry.count;
  end.timeout_ms = entry.timeout_ms;
  if (is_send) BRAID_RETURN_IF_ERROR(find_bytes(entry, arenas, end));
  return end;
}

}  // namespace braid
