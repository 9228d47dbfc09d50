// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "levels/level_cut.h"

namespace braid::client {

// Ranks of another version say something else.
inline constexpr uint32_t kLevelVersion = 1;
// What each rank gives in each round of the agreement, in all versions.
inline constexpr size_t kLevelMessageBytes = 1024;

// Words that one rank says to the others, as bytes.
class SaidText {
 public:
  void set(std::string_view text);
  bool is_empty() const { return bytes_[0] == '\0'; }
  // Printable, whatever another rank has sent.
  std::string text() const;

 private:
  std::array<char, 256> bytes_ = {};
};

// What a rank says of itself when all ranks of a job agree on levels. It travels as it lies in
// memory.
struct LevelReport {
  uint32_t version = kLevelVersion;
  uint32_t nccl_version = 0;
  uint64_t node = 0;  // the daemon's number
  std::array<uint8_t, 16> gpu = {};
  SaidText no_device;      // why it cannot give braid device memory; empty: it can
  SaidText no_two_levels;  // why it takes one level; empty: it may take two
};

// How many levels a job has, which all ranks conclude alike.
struct LevelChoice {
  uint32_t levels = 1;  // 0: device memory of some rank cannot be carried
  std::string reason;   // why not two
  LevelPlace place;     // of two
};

// From the reports of all ranks, in their order.
LevelChoice choose_levels(std::span<const LevelReport> reports, uint32_t rank);

}  // namespace braid::client
