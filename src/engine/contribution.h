// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/partition.h"
#include "engine/reduce_kernels.h"

namespace braid {

// What this node's ranks give to an operation: their inputs as bytes. I/O loop only. All calls are
// for extents of whole elements in the operation's result, none is for bytes twice at one time, and
// the inputs do not change until the operation is done.
class Contribution {
 public:
  virtual ~Contribution() = default;

  // out = input of the first local rank op that of the second one op … op wire; without `wire`
  // (nullptr) the inputs alone. The same bits every time. `out` is not one of the inputs.
  virtual void reduce(const Extent& extent, const uint8_t* wire, uint8_t* out, Store store) = 0;
  // All-gather: the local ranks' blocks. Broadcast on the root's node: the root's input.
  virtual void copy(const Extent& extent, uint8_t* out) = 0;
  // Where the bytes of reduce() without `wire` lie already, unchanged until the operation is done;
  // nullptr: nowhere. Always the same answer for an extent.
  virtual const uint8_t* find(const Extent& extent) const = 0;
};

}  // namespace braid
