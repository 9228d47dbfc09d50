// SPDX-License-Identifier: Apache-2.0
#include "job/input_arenas.h"

#include <algorithm>

#include "base/checked.h"
#include "operation/share_memory.h"
#include "proto/ring.h"

namespace braid {

Result<uint32_t> InputArenas::add(Fd memory, uint64_t bytes) {
  if (arenas_->size() >= proto::kArenasMax) {
    return make_status(StatusCode::ResourceExhausted,
                       "a trainer has at most {} input arenas: register fewer and larger ones",
                       proto::kArenasMax);
  }
  const uint64_t before = charge_.amount();
  const CheckedNumber together = CheckedNumber(before) + bytes;
  if (!together.is_at_most(bytes_max_)) {
    return make_status(StatusCode::ResourceExhausted,
                       "the input arena has {} bytes, those before it {}, and this node's "
                       "client.arena_bytes_max allows {} together: ask for less "
                       "(braid_job_options.arena_bytes) or raise it",
                       bytes, before, bytes_max_);
  }
  BRAID_RETURN_IF_ERROR(descriptors_.set(arenas_->size() + 1));
  Status room = charge_.set(*together.value());
  if (!room) {
    (void)descriptors_.set(arenas_->size());
    return room;
  }
  auto arena = SharedMemory::adopt(std::move(memory), bytes, bytes_max_,
                                   SharedMemory::Access::ReadOnly, "input arena");
  if (!arena) {
    (void)charge_.set(before);
    (void)descriptors_.set(arenas_->size());
    return arena.status();
  }
  auto more = std::make_shared<List>(*arenas_);
  more->push_back(share_memory(std::move(arena).value(), worker_));
  arenas_ = std::move(more);
  known_.emplace_back();
  return static_cast<uint32_t>(arenas_->size() - 1);
}

// A trainer that makes holes again and again has no more pages in the end than its arenas.
Status InputArenas::count_missing_pages(uint32_t number, uint64_t offset, uint64_t bytes) {
  const SharedMemory& arena = *(*arenas_)[number];
  if (offset >= arena.size()) return Status::ok();
  const uint64_t looked = std::min(bytes, arena.size() - offset);
  if (known_[number].has(offset, looked)) return Status::ok();
  if (const uint64_t missing = arena.missing_bytes(offset, looked); missing > 0) {
    BRAID_RETURN_IF_ERROR(
        pages_.set(std::min(pages_.amount() + missing, charge_.amount()))
            .with_context(fmt::format("{} of the {} bytes at {} of the arena were never written, "
                                      "and reading them takes the daemon's memory",
                                      std::min(missing, bytes), bytes, offset)));
  }
  if (arena.keeps_pages()) known_[number].add(offset, looked);
  return Status::ok();
}

}  // namespace braid
