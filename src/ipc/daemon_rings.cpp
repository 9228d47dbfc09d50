// SPDX-License-Identifier: Apache-2.0
#include "ipc/daemon_rings.h"

#include <cerrno>
#include <utility>

#include <sys/epoll.h>
#include <sys/socket.h>

namespace braid {

Result<std::unique_ptr<DaemonRings>> DaemonRings::adopt(Fd rings, Fd submit_wake,
                                                        uint32_t submit_capacity,
                                                        uint32_t done_capacity) {
  if (!is_ring_capacity(submit_capacity) || !is_ring_capacity(done_capacity)) {
    return check_rings(nullptr, 0, submit_capacity, done_capacity).status();
  }
  const uint64_t bytes = proto::rings_bytes(submit_capacity, done_capacity);
  auto memory = SharedMemory::adopt(std::move(rings), bytes, bytes, SharedMemory::Access::ReadWrite,
                                    "rings' memory");
  if (!memory) return memory.status();
  auto view = check_rings(memory->data(), bytes, submit_capacity, done_capacity);
  if (!view) return view.status();
  BRAID_RETURN_IF_ERROR(check_eventfd(submit_wake.get(), "wake-up of the submit ring"));

  std::unique_ptr<DaemonRings> result(new DaemonRings());
  result->memory_ = std::move(*memory);
  result->may_linger_ =
      !result->memory_.keeps_pages() || result->memory_.missing_bytes(0, bytes) > 0;
  result->submit_wake_ = std::move(submit_wake);
  result->submit_ = {&view->header->submit, view->submit, submit_capacity};
  result->done_ = {&view->header->done, view->done, done_capacity};
  BRAID_RETURN_IF_ERROR(result->make_done_wake());
  return result;
}

// Made here, and this end kept: who shares a description can make writing to it block. Nothing can
// be sent to this end, so there is nothing in it that closing it would have to close, too.
Status DaemonRings::make_done_wake() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return Status::from_errno(errno, "cannot make the wake-up of the done ring");
  done_wake_ = Fd(ends[0]);
  client_done_wake_ = Fd(ends[1]);
  if (::shutdown(done_wake_.get(), SHUT_RD) == 0) return Status::ok();
  return Status::from_errno(errno, "cannot make the wake-up of the done ring");
}

Status DaemonRings::start(Loop& loop, std::function<void()> on_submit) {
  submit_edge_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event edge{};
  edge.events = EPOLLIN | EPOLLET;
  if (!submit_edge_.is_valid() ||
      ::epoll_ctl(submit_edge_.get(), EPOLL_CTL_ADD, submit_wake_.get(), &edge) != 0)
    return Status::from_errno(errno, "cannot watch the submit ring's wake-up");
  auto poll = Poll::create(loop, submit_edge_.get());
  if (!poll) return poll.status().with_context("the submit ring's wake-up");
  uv_idle_init(loop.uv(), again_.get());
  again_.set_initialised();
  again_.get()->data = this;
  on_submit_ = std::move(on_submit);
  poll_ = std::move(*poll);
  poll_->start(UV_READABLE, [this](int) { on_wake(); });
  loop_ = &loop;
  loop_->polling().add(*this);
  serve_again();  // the client may have submitted before anybody listened
  return Status::ok();
}

void DaemonRings::stop() {
  if (loop_ != nullptr) std::exchange(loop_, nullptr)->polling().remove(*this);
  poll_.reset();
  again_.close();
  on_submit_ = nullptr;
}

void DaemonRings::on_wake() {
  epoll_event edge{};
  ::epoll_wait(submit_edge_.get(), &edge, 1, 0);
  serve();
}

void DaemonRings::serve() {
  drained_ = false;
  loop_->polling().note_work();
  const Lifetime::Token life = lifetime_.token();
  const auto keep = on_submit_;  // the callback may call stop()
  keep();
  if (!life.is_over() && poll_ != nullptr && !drained_) serve_again();
}

// Not drained: nobody sleeps, so nobody will be woken. In the loop's next round, so that its other
// handles have their turn first.
void DaemonRings::serve_again() {
  if (poll_ == nullptr) return;  // stopped, after an error that ends the job: its verdict comes
  uv_idle_start(again_.get(), [](uv_idle_t* idle) {
    uv_idle_stop(idle);
    static_cast<DaemonRings*>(idle->data)->serve();
  });
}

void DaemonRings::begin_polling() { submit_.cancel_sleep(); }

void DaemonRings::end_polling() {
  if (!is_broken_ && !submit_.prepare_sleep()) serve_again();
}

Result<bool> DaemonRings::pop(proto::SubmitEntry& entry) {
  while (true) {
    switch (submit_.pop(entry)) {
      case RingState::Ready:
        if (Status status = check_submit_entry(entry); !status) {
          drained_ = true;
          is_broken_ = true;
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
    is_broken_ = true;
    return make_status(StatusCode::Protocol, "the submit ring's indices are corrupt");
  }
}

Status DaemonRings::push_done(const proto::DoneEntry& entry) {
  switch (done_.state()) {
    case RingState::Ready:
      done_.push(entry);
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
  if (done_.take_wake_duty()) send_wake(done_wake_.get());
}

}  // namespace braid
