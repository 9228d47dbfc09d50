// SPDX-License-Identifier: Apache-2.0
#include "ipc/daemon_rings.h"

#include <utility>

#include "ipc/ipc_status.h"

namespace braid {

Result<std::unique_ptr<DaemonRings>> DaemonRings::adopt(Fd rings, Fd submit_wake, Fd done_wake,
                                                        uint32_t submit_capacity,
                                                        uint32_t done_capacity) {
  if (!is_ring_capacity(submit_capacity) || !is_ring_capacity(done_capacity)) {
    return to_status(check_rings(nullptr, 0, submit_capacity, done_capacity).error);
  }
  const uint64_t bytes = proto::rings_bytes(submit_capacity, done_capacity);
  auto memory = to_result(
      Segment::adopt(std::move(rings), bytes, bytes, Segment::Access::ReadWrite, "rings' memory"));
  if (!memory) return memory.status();
  auto view = to_result(check_rings(memory->data(), bytes, submit_capacity, done_capacity));
  if (!view) return view.status();
  BRAID_RETURN_IF_ERROR(to_status(adopt_eventfd(submit_wake.get(), "wake-up of the submit ring")));
  BRAID_RETURN_IF_ERROR(to_status(adopt_eventfd(done_wake.get(), "wake-up of the done ring")));

  std::unique_ptr<DaemonRings> result(new DaemonRings());
  result->memory_ = std::move(*memory);
  result->submit_wake_ = std::move(submit_wake);
  result->done_wake_ = std::move(done_wake);
  result->submit_ = {&view->header->submit, view->submit, submit_capacity};
  result->done_ = {&view->header->done, view->done, done_capacity};
  return result;
}

DaemonRings::~DaemonRings() { *alive_ = false; }

Status DaemonRings::start(Loop& loop, std::function<void()> on_submit) {
  auto poll = Poll::create(loop, submit_wake_.get());
  if (!poll) return poll.status().with_context("the submit ring's wake-up");
  on_submit_ = std::move(on_submit);
  poll_ = std::move(*poll);
  poll_->start(UV_READABLE, [this](int) { on_wake(); });
  // The client may have submitted before anybody listened.
  signal_eventfd(submit_wake_.get());
  return Status::ok();
}

void DaemonRings::stop() {
  poll_.reset();
  on_submit_ = nullptr;
}

void DaemonRings::on_wake() {
  drain_eventfd(submit_wake_.get());
  drained_ = false;
  const std::shared_ptr<bool> alive = alive_;
  const auto keep = on_submit_;  // the callback may call stop()
  keep();
  // Not drained: nobody sleeps, so nobody will be woken. Through the eventfd, other handles of the
  // loop have their turn first.
  if (*alive && poll_ != nullptr && !drained_) signal_eventfd(submit_wake_.get());
}

Result<bool> DaemonRings::pop(proto::SubmitEntry& entry) {
  while (true) {
    switch (submit_.pop(entry)) {
      case RingState::Ready:
        if (Status status = to_status(check_submit_entry(entry)); !status) {
          drained_ = true;
          return status;
        }
        return true;
      case RingState::Empty:
        if (!submit_.prepare_sleep()) continue;
        drained_ = true;
        return false;
      case RingState::Full:
      case RingState::Corrupt:
        break;
    }
    drained_ = true;
    return make_status(StatusCode::Protocol, "the submit ring's indices are corrupt");
  }
}

Status DaemonRings::push_done(const proto::DoneEntry& entry) {
  switch (done_.state()) {
    case RingState::Ready:
      done_.write(entry);
      done_.publish();
      return Status::ok();
    case RingState::Full:
      return make_status(
          StatusCode::ResourceExhausted,
          "the done ring is full: more than {} operations ended that the trainer did not look at",
          done_.capacity());
    case RingState::Empty:
    case RingState::Corrupt:
      break;
  }
  return make_status(StatusCode::Protocol, "the done ring's indices are corrupt");
}

void DaemonRings::wake_client() {
  if (done_.take_wake_duty()) signal_eventfd(done_wake_.get());
}

}  // namespace braid
