// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "loop/loop.h"
#include "loop/timer.h"
#include "loop/work_thread.h"
#include "net/transport.h"
#include "net/ucx_context.h"

namespace braid {

// UCX on each of options.rails. UCX knows devices with a carrier only: a rail without one has
// nullptr in its place, and a warning names it. Fails if no rail is left, or if one cannot be used
// for another reason.
Result<std::vector<std::shared_ptr<UcxContext>>> open_rails(const TransportOptions& options);

// Opens rails that had no carrier at first, when they have one. UCX takes long for it, so a thread
// does. One loop only.
class LateRails {
 public:
  static constexpr uint32_t kLookEveryMs = 1000;

  // `ready` comes once for each of `rails`, which are places in options.rails.
  using Ready = std::function<void(size_t rail, std::shared_ptr<UcxContext> context)>;
  LateRails(Loop& loop, const TransportOptions& options, std::set<size_t> rails, Ready ready);

 private:
  void look();
  void take(size_t rail, const Result<std::shared_ptr<UcxContext>>& opened);

  const TransportOptions& options_;
  std::set<size_t> rails_;
  std::set<size_t> trying_;
  std::set<size_t> told_;  // of which it was said why they cannot be used yet
  const Ready ready_;
  Timer timer_;  // active while there are rails to come
  WorkThread worker_;
};

}  // namespace braid
