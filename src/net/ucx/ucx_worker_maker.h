// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/hmac.h"
#include "loop/paced_tasks.h"
#include "loop/work_thread.h"
#include "net/ucx/ucx_endpoint.h"
#include "net/ucx/ucx_worker.h"

namespace braid {

// A worker and, once the address of the other side's worker is known, its endpoint.
struct UcxConnection {
  std::unique_ptr<UcxWorker> worker;
  std::unique_ptr<UcxEndpoint> endpoint;  // goes before its worker
};

// Makes, connects and destroys the UCX workers of one loop on a thread of its own. For each of
// these UCX reads /proc and /sys and opens, asks and closes dozens of sockets: one to ten
// milliseconds, in which the loop would stand still. Made, used and destroyed on the loop's thread.
class UcxWorkerMaker {
 public:
  using Made = Result<UcxConnection>;

  // `strangers`: see UcxWorker::create.
  UcxWorkerMaker(Loop& loop, PacedTasks& paced, std::atomic<uint64_t>& strangers);
  UcxWorkerMaker(const UcxWorkerMaker&) = delete;
  UcxWorkerMaker& operator=(const UcxWorkerMaker&) = delete;
  ~UcxWorkerMaker();  // waits for the worker that is being made or destroyed

  // A worker on the rail of `context`; without a context (the rail has had no carrier yet) that is
  // the error. With `remote_address` it is connected to the worker there. `take` comes on the
  // loop, as one of its paced tasks, never from within this call. `segment_bytes`: see UcxSockets.
  void make(const void* owner, std::shared_ptr<UcxContext> context, const Sha256Digest& proof_key,
            std::optional<std::vector<uint8_t>> remote_address, std::function<void(Made)> take,
            int segment_bytes = 0);
  // Connects a worker that was made without a remote address. Where that fails it is gone.
  void connect(const void* owner, std::unique_ptr<UcxWorker> worker,
               std::vector<uint8_t> remote_address, std::function<void(Made)> take);
  // This owner takes nothing any more.
  void drop(const void* owner);
  // It has no handler, and no send is on its way.
  void destroy(UcxConnection connection);
  // Calls `done` on the loop when all workers that were given to destroy() until now are gone.
  void after_all(const std::function<void()>& done);

 private:
  struct Request {
    const void* owner;
    std::function<void(Made)> take;
  };

  void start(const void* owner, std::function<Made()> work, std::function<void(Made)> take);
  void hand_over(uint64_t request, Made made);

  PacedTasks& paced_;
  std::atomic<uint64_t>& strangers_;
  uint64_t last_request_ = 0;
  std::unordered_map<uint64_t, Request> requests_;  // of owners that were not dropped
  WorkThread thread_;
};

}  // namespace braid
