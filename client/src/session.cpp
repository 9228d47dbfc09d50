// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <poll.h>
#include <sys/eventfd.h>

namespace braid::client {
namespace {

// A daemon that takes entries out of a full ring doesn't tell: the producer looks again this often.
constexpr uint64_t kRingFullPauseNs = 500'000;

std::chrono::steady_clock::time_point time_point_of(uint64_t deadline_ns) {
  // steady_clock is CLOCK_MONOTONIC, as now_ns() is. An hour from now at most: far deadlines must
  // not overflow.
  constexpr uint64_t kLongestNs = 3'600'000'000'000;
  const auto at = std::min(deadline_ns, now_ns() + kLongestNs);
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(at));
}

}  // namespace

Error daemon_error(uint8_t code, const flatbuffers::String* text) {
  const bool known = code > BRAID_OK && code <= BRAID_ERROR_INTERNAL;
  return {known ? static_cast<int>(code) : static_cast<int>(BRAID_ERROR_INTERNAL), text->str()};
}

Error Session::create_rings() {
  const uint64_t bytes = proto::rings_bytes(kSubmitCapacity, kDoneCapacity);
  auto rings = Segment::create("braid-rings", bytes, Segment::Access::ReadWrite);
  if (!rings) return from_ipc(rings.error);
  rings_ = std::move(rings.value);
  const IpcError error = rings_.reserve(0, bytes);
  if (!error.is_ok()) return from_ipc(error);
  submit_wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  leader_wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!submit_wake_.is_valid() || !leader_wake_.is_valid()) {
    return from_ipc(IpcError::from_errno(errno, "cannot make an eventfd"));
  }
  const RingsView view = braid::create_rings(rings_.data(), kSubmitCapacity, kDoneCapacity);
  submit_ = {&view.header->submit, view.submit, kSubmitCapacity};
  done_ = {&view.header->done, view.done, kDoneCapacity};
  return {};
}

void Session::fail(Error error) {
  if (!failure_.is_ok()) return;
  failure_ = std::move(error);
  changed_.notify_all();
  if (has_leader_) signal_eventfd(leader_wake_.get());
}

void Session::drain_done() {
  bool any = false;
  proto::DoneEntry entry{};
  RingState state = RingState::Empty;
  while (failure_.is_ok() && (state = done_.pop(entry)) == RingState::Ready) {
    any = true;
    if (Error error = on_done_(entry); !error) fail(std::move(error));
  }
  if (any) changed_.notify_all();
  if (state == RingState::Corrupt) {
    fail(make_error(BRAID_ERROR_PROTOCOL, "the done ring's indices are corrupt"));
  }
}

void Session::receive_messages() {
  while (failure_.is_ok()) {
    Received received;
    Error error = connection_.receive(received);
    if (error.is_ok() && received.message == nullptr) return;
    // What ended before the bad news has ended well.
    drain_done();
    if (!error) {
      // After the leave-taking the daemon may close the socket.
      fail(has_left_ ? make_error(BRAID_ERROR_CANCELLED, "the job was left") : std::move(error));
    } else {
      handle(*received.message);
    }
  }
}

void Session::handle(const proto::ClientMessage& message) {
  if (const auto* failure = message.body_as_Failure()) {
    fail(daemon_error(failure->code(), failure->text()));
  } else if (const auto* registered = message.body_as_TensorsRegistered()) {
    registration_ = Registration{{}, registered->first_handle()};
  } else if (const auto* refused = message.body_as_RegistrationRefused()) {
    registration_ = Registration{daemon_error(refused->code(), refused->text()), 0};
  } else if (message.body_type() == proto::ClientBody::JobLeft) {
    has_left_ = true;
  } else {
    fail(make_error(BRAID_ERROR_PROTOCOL, "braidd at '", connection_.path(),
                    "' sent an unexpected ", proto::EnumNameClientBody(message.body_type())));
  }
  changed_.notify_all();
}

void Session::poll_once() {
  drain_done();
  // The leader watches the socket already.
  if (!has_leader_) receive_messages();
}

bool Session::wait_until(std::unique_lock<std::mutex>& lock, uint64_t deadline_ns,
                         const std::function<bool()>& is_over) {
  while (true) {
    drain_done();
    if (is_over() || !failure_.is_ok()) return true;
    const int timeout_ms = milliseconds_until(deadline_ns);
    if (timeout_ms == 0) return false;
    if (has_leader_) {
      changed_.wait_until(lock, time_point_of(deadline_ns));
    } else if (done_.prepare_sleep()) {
      lead(lock, timeout_ms);
    }
  }
}

void Session::lead(std::unique_lock<std::mutex>& lock, int timeout_ms) {
  const short socket_events = static_cast<short>(POLLIN | (connection_.has_unsent() ? POLLOUT : 0));
  pollfd fds[] = {{done_wake_.get(), POLLIN, 0},
                  {connection_.fd(), socket_events, 0},
                  {leader_wake_.get(), POLLIN, 0}};
  has_leader_ = true;
  lock.unlock();
  ::poll(fds, 3, timeout_ms);
  lock.lock();
  has_leader_ = false;
  done_.cancel_sleep();
  changed_.notify_all();
  if (fds[0].revents != 0) drain_wakes(done_wake_.get());
  if (fds[2].revents != 0) drain_eventfd(leader_wake_.get());
  Error unsent;
  if ((fds[1].revents & POLLOUT) != 0) unsent = connection_.flush();
  if (fds[1].revents != 0) receive_messages();  // first: it may say why it does not take more
  if (!unsent) fail(std::move(unsent));
}

Error Session::push(std::unique_lock<std::mutex>& lock, std::span<const proto::SubmitEntry> entries,
                    uint64_t deadline_ns) {
  const auto count = static_cast<uint32_t>(entries.size());
  while (failure_.is_ok()) {
    switch (submit_.state(count)) {
      case RingState::Ready:
        for (uint32_t i = 0; i < count; ++i) submit_.write(entries[i], i);
        submit_.publish(count);
        return {};
      case RingState::Full:
        break;
      case RingState::Empty:
      case RingState::Corrupt:
        fail(make_error(BRAID_ERROR_PROTOCOL, "the submit ring's indices are corrupt"));
        return failure_;
    }
    const uint64_t now = now_ns();
    if (now >= deadline_ns) {
      return make_error(BRAID_ERROR_DEADLINE_EXCEEDED, "braidd at '", connection_.path(),
                        "' does not answer: the submit ring (", kSubmitCapacity,
                        " entries) stayed full");
    }
    wake_daemon();
    wait_until(lock, std::min(deadline_ns, now + kRingFullPauseNs),
               [&] { return submit_.state(count) != RingState::Full; });
  }
  return failure_;
}

void Session::wake_daemon() {
  if (submit_.take_wake_duty()) signal_eventfd(submit_wake_.get());
}

Error Session::send(flatbuffers::FlatBufferBuilder& message) {
  if (Error error = connection_.send(message); !error) {
    receive_messages();  // the daemon may have said why it went away
    return failure_.is_ok() ? error : failure_;
  }
  if (has_leader_)
    signal_eventfd(leader_wake_.get());  // the rest of it is the next leader's to send
  return {};
}

}  // namespace braid::client
