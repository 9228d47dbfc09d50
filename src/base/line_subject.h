// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace braid {

// As long as it lives, the lines that this thread logs are about a process or a job of this user:
// the log counts them apart from those about other users (base/log.h).
class LineSubject {
 public:
  explicit LineSubject(uint32_t user) : before_(user_) { user_ = user; }
  ~LineSubject() { user_ = before_; }
  LineSubject(const LineSubject&) = delete;
  LineSubject& operator=(const LineSubject&) = delete;

  static std::optional<uint32_t> user() { return user_; }

 private:
  static inline thread_local std::optional<uint32_t> user_;
  const std::optional<uint32_t> before_;
};

}  // namespace braid
