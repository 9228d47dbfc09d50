// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "codec/codec_loss.h"
#include "proto/types.h"

namespace braid {

// What a node measures of one operation's codec in a sampled step, chunk by chunk. add() may come
// from any I/O loop: the lock is held for a chunk's sums, in such steps only. Everything else is of
// the control loop, before the operation starts and after it is done.
class CodecGauge {
 public:
  // Which chunks' decoded elements add up to the result: the parts of a direct operation, the sums
  // where nobody but an owner encodes any. Plain, as at first: neither, so there is no cosine.
  void set_final(Encoding encoding) { final_ = encoding; }
  bool is_final(Encoding encoding) const { return encoding == final_; }

  void add(const CodecLoss& chunk) {
    const std::lock_guard lock(mutex_);
    loss_.add(chunk);
  }
  CodecLoss loss() const {
    const std::lock_guard lock(mutex_);
    CodecLoss all = loss_;
    all.has_sketches = all.has_sketches && final_ != Encoding::Plain;
    return all;
  }

 private:
  Encoding final_ = Encoding::Plain;
  mutable std::mutex mutex_;
  CodecLoss loss_;
};

}  // namespace braid
