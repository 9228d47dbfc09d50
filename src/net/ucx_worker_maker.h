// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "loop/paced_tasks.h"
#include "loop/work_thread.h"
#include "net/ucx_worker.h"

namespace braid {

// Makes and destroys the UCX workers of one loop on a thread of its own. UCX reads /proc and /sys
// and asks netlink for each worker that it makes, and closes sockets for each that goes: one to ten
// milliseconds, in which the loop would stand still. Made, used and destroyed on the loop's thread.
class UcxWorkerMaker {
 public:
  using Made = Result<std::unique_ptr<UcxWorker>>;

  // `strangers`: see UcxWorker::create.
  UcxWorkerMaker(Loop& loop, PacedTasks& paced, std::atomic<uint64_t>& strangers);
  UcxWorkerMaker(const UcxWorkerMaker&) = delete;
  UcxWorkerMaker& operator=(const UcxWorkerMaker&) = delete;
  ~UcxWorkerMaker();  // waits for the worker that is being made or destroyed

  // A worker on the rail of `context`; without a context (the rail has had no carrier yet) that is
  // the error. `take` comes on the loop, as one of its paced tasks, never from within this call.
  void make(const void* owner, std::shared_ptr<UcxContext> context, uint64_t link_secret,
            std::function<void(Made)> take);
  // This owner takes no worker any more.
  void drop(const void* owner);
  // Its endpoint is closed, and it has no handler.
  void destroy(std::unique_ptr<UcxWorker> worker);
  // Calls `done` on the loop when all workers that were given to destroy() until now are gone.
  void after_all(const std::function<void()>& done);

 private:
  struct Request {
    const void* owner;
    std::function<void(Made)> take;
  };

  void hand_over(uint64_t request, Made made);

  PacedTasks& paced_;
  std::atomic<uint64_t>& strangers_;
  uint64_t last_request_ = 0;
  std::unordered_map<uint64_t, Request> requests_;  // of owners that were not dropped
  WorkThread thread_;
};

}  // namespace braid
