// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/log.h"

namespace braid {

// The fields of the line that this thread is writing: spdlog's messages have none, and its sinks
// and formatters are called on the thread that logs.
class LineFields {
 public:
  explicit LineFields(const LogFields& fields) : before_(current_) { current_ = &fields; }
  ~LineFields() { current_ = before_; }
  LineFields(const LineFields&) = delete;
  LineFields& operator=(const LineFields&) = delete;

  static const LogFields& current() {
    static constexpr LogFields kNone;
    return current_ == nullptr ? kNone : *current_;
  }

 private:
  static inline thread_local const LogFields* current_ = nullptr;
  const LogFields* const before_;
};

}  // namespace braid
