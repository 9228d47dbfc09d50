// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace braid {

struct MemoryRange {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool operator==(const MemoryRange&) const = default;
};

// Which blocks of a memory have pages, which of them extents use, and which nobody has used for so
// long that their pages may go back to the kernel. Time passes in rounds, which the owner counts.
//
//   absent  --an extent uses it--> wanted --reserved--> present
//   present --idle for long enough--> going --given back--> absent
//                                     going --an extent uses it--> wanted
//
// A block is idle while no extent uses it. How long is long enough adapts itself: if what was given
// back is soon used again, twice as long from then on. So a loop, however long it takes, has its
// pages given back and taken again a few times at most. Bookkeeping only; one thread at a time.
class MemoryBlocks {
 public:
  static constexpr uint32_t kFirstPatienceRounds = 2;
  static constexpr uint32_t kPatienceRoundsMax = 1 << 12;
  // What is used again within so many times the patience was given back too early.
  static constexpr uint32_t kSoon = 16;

  // `kept_bytes` stay, however idle.
  MemoryBlocks(uint64_t bytes, uint64_t block_bytes, uint64_t kept_bytes)
      : bytes_(bytes), block_bytes_(block_bytes), kept_bytes_(kept_bytes) {}

  // An extent's beginning and end. Its blocks without pages are wanted then.
  void use(const MemoryRange& extent);
  void stop_using(const MemoryRange& extent);

  // How much more taken_bytes() would be if the extent was used.
  uint64_t missing_bytes(const MemoryRange& extent) const;
  bool has_memory(const MemoryRange& extent) const;

  // Wanted blocks that follow one another, the lowest first, at most `bytes_max` and at least one.
  std::optional<MemoryRange> next_wanted(uint64_t bytes_max) const;
  void on_reserved(const MemoryRange& range);
  // There is no memory: what is wanted and used by nobody is absent again.
  void drop_wanted();

  void pass_round();
  // Blocks that follow one another and have been idle for long enough (`at_once`: that are idle),
  // the highest first: going from now on.
  std::optional<MemoryRange> next_idle(uint64_t bytes_max, bool at_once = false);
  // What next_idle() said has no pages any more, except where it is wanted again.
  void on_given_back(const MemoryRange& range);
  // It could not be given back: what is not wanted again is present.
  void on_kept(const MemoryRange& range);

  // The bytes of blocks that have pages, or soon will have.
  uint64_t taken_bytes() const { return taken_bytes_; }
  bool has_wanted() const { return wanted_ > 0; }
  // More than what stays anyway.
  bool may_give_back() const { return taken_bytes_ > kept_bytes_; }
  uint32_t patience_rounds() const { return patience_rounds_; }

 private:
  enum class State : uint8_t { Absent, Wanted, Present, Going };
  struct Block {
    uint32_t extents = 0;  // that use it
    uint32_t changed = 0;  // the round of its last use, or in which it was given back
    State state = State::Absent;
    bool was_idle = false;  // given back for that
  };

  size_t first_of(const MemoryRange& range) const { return range.offset / block_bytes_; }
  size_t end_of(const MemoryRange& range) const;
  uint64_t bytes_of(size_t block) const;
  MemoryRange range_of(size_t first, size_t end) const;
  bool is_idle(const Block& block, bool at_once) const;

  uint64_t bytes_;
  uint64_t block_bytes_;
  uint64_t kept_bytes_;
  std::vector<Block> blocks_;  // up to the highest that was ever used
  uint64_t taken_bytes_ = 0;
  uint64_t going_bytes_ = 0;
  size_t wanted_ = 0;
  uint32_t round_ = 0;
  uint32_t patience_rounds_ = kFirstPatienceRounds;
  bool was_too_early_ = false;  // in this round
};

}  // namespace braid
