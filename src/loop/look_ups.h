// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/status.h"

namespace braid {

// Counts look-ups of host names that have not ended, forgotten ones included, and refuses those
// that would be too many. Any thread.
class LookUps {
 public:
  // A user who has none under way gets one all the same, so others' slow names cannot shut him out.
  static constexpr size_t kMax = 64;
  static constexpr size_t kPerUserMax = 16;

  static const std::shared_ptr<LookUps>& of_process();

  // No user: this daemon itself.
  Status begin(const std::string& host, std::optional<uint32_t> user) BRAID_EXCLUDES(mutex_);
  void end(std::optional<uint32_t> user) BRAID_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  size_t count_ BRAID_GUARDED_BY(mutex_) = 0;
  std::map<std::optional<uint32_t>, size_t> of_user_ BRAID_GUARDED_BY(mutex_);
};

}  // namespace braid
