// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "base/status.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "loop/work_thread.h"
#include "net/transport.h"

namespace braid {

// False: it is a network device, and switched off or without a carrier. What is no network device,
// as mlx5_0:1, is for UCX to judge.
bool has_link(const std::string& rail);

// Opens each of options.rails, by its place. A rail that cannot be opened since it has no carrier
// comes later: a warning names it. Returns those; fails if no rail is left, or if one cannot be
// used for another reason.
Result<std::set<size_t>> open_rails(const TransportOptions& options,
                                    const std::function<Status(size_t rail)>& open);

// Opens rails that had no carrier at first, when they have one. That may take long, so a thread
// does it. One loop only.
class LateRails {
 public:
  static constexpr uint32_t kLookEveryMs = 1000;

  // `open` comes on the thread, one call at a time; `ready` on the loop, once for each of `rails`
  // that was opened. `rails` are places in options.rails.
  LateRails(Loop& loop, const TransportOptions& options, std::set<size_t> rails,
            std::function<Status(size_t rail)> open, std::function<void(size_t rail)> ready);

 private:
  void look();
  void take(size_t rail, const Status& opened);

  const TransportOptions& options_;
  std::set<size_t> rails_;
  std::set<size_t> trying_;
  std::set<size_t> told_;  // of which it was said why they cannot be used yet
  const std::function<Status(size_t)> open_;
  const std::function<void(size_t)> ready_;
  Timer timer_;  // active while there are rails to come
  WorkThread worker_;
};

}  // namespace braid
