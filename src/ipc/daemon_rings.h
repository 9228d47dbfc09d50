// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include <uv.h>

#include "base/fd.h"
#include "base/lifetime.h"
#include "base/status.h"
#include "ipc/rings.h"
#include "ipc/shared_memory.h"
#include "loop/handle.h"
#include "loop/loop_polling.h"
#include "loop/poll.h"

namespace braid {

// The daemon's end of one trainer's rings: takes submissions, gives completions. Control loop only;
// owned by the trainer's session. Trusts nothing in the shared memory: an entry is copied out
// before it is looked at, and an index that cannot be is a PROTOCOL error, after which the session
// should be ended.
class DaemonRings final : private Pollable {
 public:
  ~DaemonRings() override { stop(); }

  // Takes the descriptors that came with OpenJob; capacities as OpenJob gave them (unchecked).
  static Result<std::unique_ptr<DaemonRings>> adopt(Fd rings, Fd submit_wake,
                                                    uint32_t submit_capacity,
                                                    uint32_t done_capacity);

  uint64_t memory_bytes() const { return memory_.size(); }
  // Whether some of it is memory of this daemon that the trainer's process can keep: pages that it
  // has not made itself, or that it can take out of the rings to have them made here.
  bool may_linger() const { return may_linger_; }

  // The trainer's end of the done ring's wake-up: once, to be sent to it.
  Fd take_done_wake() { return std::move(client_done_wake_); }

  // Calls `on_submit` on the loop whenever there may be submissions (also once soon after this
  // call). The callback pops until pop() says false, or leaves the rest: then it is called again in
  // a later round of the loop. It may destroy this object.
  Status start(Loop& loop, std::function<void()> on_submit);
  // No more callbacks.
  void stop();
  // Calls the callback in the loop's next round, as if the client had woken it; after stop()
  // nothing.
  void serve_again();

  // True: `entry` is the next submission; its kind and enums are valid, nothing else was checked.
  // False: there is none. After an error `on_submit` is not called again by itself.
  Result<bool> pop(proto::SubmitEntry& entry);

  // How many pop() would give now; unchecked.
  uint32_t waiting() const { return submit_.waiting(); }

  // Publishes one completion; the client may not notice before wake_client(). Full: the client has
  // more operations in flight than it said (RESOURCE_EXHAUSTED).
  Status push_done(const proto::DoneEntry& entry);
  // Wakes the client if it sleeps: call once after a batch of push_done.
  void wake_client();
  // Whether the client's threads may poll the done ring before they sleep.
  void let_client_poll(bool may_poll) { done_.let_consumer_poll(may_poll); }

 private:
  DaemonRings() = default;
  Status make_done_wake();
  void on_wake();
  void serve();

  void begin_polling() override;
  bool has_something() const override { return !is_broken_ && submit_.has_any(); }
  void end_polling() override;

  Loop* loop_ = nullptr;  // from start() to stop()
  SharedMemory memory_;
  bool may_linger_ = false;
  Fd submit_wake_;  // the trainer's eventfd, never read
  // Watches it, edge-triggered: one wake-up for each write, whatever its count is.
  Fd submit_edge_;
  Fd done_wake_;
  Fd client_done_wake_;  // until it was taken
  RingConsumer<proto::SubmitEntry> submit_;
  RingProducer<proto::DoneEntry> done_;
  std::function<void()> on_submit_;
  bool drained_ = false;        // pop() said false or failed since the last wake-up
  bool is_broken_ = false;      // pop() has failed
  Handle<uv_idle_t> again_;     // active while there is more, and nobody who would wake us
  std::unique_ptr<Poll> poll_;  // goes before the descriptor that it watches
  Lifetime lifetime_;
};

}  // namespace braid
