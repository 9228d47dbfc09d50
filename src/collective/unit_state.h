// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace braid {

// A set of small numbers below a bound that is given at the start.
class Bitmap {
 public:
  Bitmap() = default;
  explicit Bitmap(uint64_t size) : words_((size + 63) / 64) {}

  bool test(uint64_t index) const { return (words_[index / 64] >> (index % 64) & 1) != 0; }
  void set(uint64_t index) { words_[index / 64] |= uint64_t{1} << (index % 64); }

 private:
  std::vector<uint64_t> words_;
};

// How far a node has come with one unit.
//
//   waiting → begun:   the successor is ready, and a stream is free or a chunk has come
//
//   begun → finished:  remaining = 0
//
// While it waits, chunks that come are added to the result and held; they are passed on when it
// begins.
struct UnitState {
  uint32_t unit = 0;        // its number in the operation
  uint32_t chunks_max = 0;  // of any segment
  // Chunks that must still come, or be copied from an input, until the result is final.
  uint64_t remaining = 0;
  bool touched = false;  // a chunk has come
  bool begun = false;
  bool holds_stream = false;
  bool finished = false;
  Bitmap reduced;   // reduce-scatter chunks that have come, by place(segment, chunk)
  Bitmap gathered;  // all-gather chunks that have come
  Bitmap prepared;  // chunks that start at this node whose bytes lie in the result by now, by chunk

  uint64_t place(uint32_t segment, uint32_t chunk) const {
    return uint64_t{segment} * chunks_max + chunk;
  }
};

}  // namespace braid
