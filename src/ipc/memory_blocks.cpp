// SPDX-License-Identifier: Apache-2.0
#include "ipc/memory_blocks.h"

#include <algorithm>

#include "base/checked.h"

namespace braid {

size_t MemoryBlocks::end_of(const MemoryRange& range) const {
  return range.bytes == 0 ? first_of(range) : (range.offset + range.bytes - 1) / block_bytes_ + 1;
}

uint64_t MemoryBlocks::bytes_of(size_t block) const {
  return std::min(block_bytes_, bytes_ - block * block_bytes_);
}

MemoryRange MemoryBlocks::range_of(size_t first, size_t end) const {
  return {first * block_bytes_, std::min(end * block_bytes_, bytes_) - first * block_bytes_};
}

void MemoryBlocks::use(const MemoryRange& extent) {
  const size_t end = end_of(extent);
  if (end > blocks_.size()) blocks_.resize(end);
  for (size_t i = first_of(extent); i < end; ++i) {
    Block& block = blocks_[i];
    if (block.state == State::Absent) {
      if (block.was_idle && round_ - block.changed <= kSoon * patience_rounds_)
        was_too_early_ = true;
      taken_bytes_ += bytes_of(i);
    } else if (block.state == State::Going) {
      was_too_early_ = was_too_early_ || block.was_idle;
      going_bytes_ -= bytes_of(i);
    }
    if (block.state == State::Absent || block.state == State::Going) {
      block.state = State::Wanted;
      ++wanted_;
    }
    ++block.extents;
    block.changed = round_;
  }
}

void MemoryBlocks::stop_using(const MemoryRange& extent) {
  for (size_t i = first_of(extent); i < end_of(extent); ++i) {
    --blocks_[i].extents;
    blocks_[i].changed = round_;
  }
}

uint64_t MemoryBlocks::missing_bytes(const MemoryRange& extent) const {
  uint64_t bytes = 0;
  for (size_t i = first_of(extent); i < end_of(extent); ++i) {
    if (i >= blocks_.size() || blocks_[i].state == State::Absent) bytes += bytes_of(i);
  }
  return bytes;
}

bool MemoryBlocks::has_memory(const MemoryRange& extent) const {
  const size_t end = end_of(extent);
  if (end > blocks_.size()) return false;
  for (size_t i = first_of(extent); i < end; ++i) {
    if (blocks_[i].state != State::Present) return false;
  }
  return true;
}

std::optional<MemoryRange> MemoryBlocks::next_wanted(uint64_t bytes_max) const {
  if (wanted_ == 0) return std::nullopt;
  size_t first = 0;
  while (blocks_[first].state != State::Wanted) ++first;
  size_t end = first + 1;
  while (end < blocks_.size() && blocks_[end].state == State::Wanted &&
         range_of(first, end + 1).bytes <= bytes_max)
    ++end;
  return range_of(first, end);
}

void MemoryBlocks::on_reserved(const MemoryRange& range) {
  for (size_t i = first_of(range); i < end_of(range); ++i) {
    if (blocks_[i].state != State::Wanted) continue;
    blocks_[i].state = State::Present;
    --wanted_;
  }
}

void MemoryBlocks::drop_wanted() {
  for (size_t i = 0; wanted_ > 0 && i < blocks_.size(); ++i) {
    if (blocks_[i].state != State::Wanted || blocks_[i].extents > 0) continue;
    blocks_[i].state = State::Absent;
    blocks_[i].was_idle = false;
    taken_bytes_ -= bytes_of(i);
    --wanted_;
  }
}

void MemoryBlocks::pass_round() {
  ++round_;
  if (was_too_early_) patience_rounds_ = std::min(2 * patience_rounds_, kPatienceRoundsMax);
  was_too_early_ = false;
}

bool MemoryBlocks::is_idle(const Block& block, bool at_once) const {
  return block.state == State::Present && block.extents == 0 &&
         (at_once || round_ - block.changed >= patience_rounds_);
}

std::optional<MemoryRange> MemoryBlocks::next_idle(uint64_t bytes_max, bool at_once) {
  const uint64_t stays = at_once ? 0 : kept_bytes_;
  const auto may_go = [&](size_t i) {
    return is_idle(blocks_[i], at_once) && taken_bytes_ - going_bytes_ >= stays + bytes_of(i);
  };
  size_t first = blocks_.size();
  size_t end = first;
  for (size_t i = blocks_.size(); i-- > 0;) {
    const bool is_next = first == end || (i + 1 == first && range_of(i, end).bytes <= bytes_max);
    if (!is_next) break;
    if (!may_go(i)) {
      if (first != end) break;
      first = end = i;
      continue;
    }
    first = i;
    blocks_[i].state = State::Going;
    blocks_[i].was_idle = !at_once;
    going_bytes_ += bytes_of(i);
  }
  if (first == end) return std::nullopt;
  return range_of(first, end);
}

void MemoryBlocks::on_given_back(const MemoryRange& range) {
  for (size_t i = first_of(range); i < end_of(range); ++i) {
    if (blocks_[i].state != State::Going) continue;
    blocks_[i].state = State::Absent;
    blocks_[i].changed = round_;
    going_bytes_ -= bytes_of(i);
    taken_bytes_ -= bytes_of(i);
  }
}

void MemoryBlocks::on_kept(const MemoryRange& range) {
  for (size_t i = first_of(range); i < end_of(range); ++i) {
    if (blocks_[i].state != State::Going) continue;
    blocks_[i].state = State::Present;
    going_bytes_ -= bytes_of(i);
  }
}

}  // namespace braid
