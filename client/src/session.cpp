// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace braid::client {
namespace {

// A daemon that takes entries out of a full ring doesn't tell: the producer looks again this often.
constexpr uint64_t kRingFullPauseNs = 500'000;
constexpr int kWatchMs = 1000;  // how often who waits looks whether the daemon still answers
constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr useconds_t kLockPauseUs = 1000;

std::chrono::steady_clock::time_point time_point_of(uint64_t deadline_ns) {
  // steady_clock is CLOCK_MONOTONIC, as now_ns() is. An hour from now at most: far deadlines must
  // not overflow.
  constexpr uint64_t kLongestNs = 3'600'000'000'000;
  const auto at = std::min(deadline_ns, now_ns() + kLongestNs);
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(at));
}

// On standard error: while this process waits there is nobody else to tell.
void say(const std::string& text) { std::fputs(("braid: " + text + "\n").c_str(), stderr); }

}  // namespace

std::unique_lock<std::mutex> lock_until(std::mutex& mutex, uint64_t deadline_ns) {
  std::unique_lock lock(mutex, std::try_to_lock);
  while (!lock.owns_lock() && now_ns() < deadline_ns) {
    ::usleep(kLockPauseUs);
    (void)lock.try_lock();
  }
  return lock;
}

Status daemon_error(uint8_t code, const flatbuffers::String* text) {
  const bool is_known = code > 0 && code <= kStatusCodeMax;
  return {is_known ? static_cast<StatusCode>(code) : StatusCode::Internal, text->str()};
}

Status Session::create_rings() {
  const uint64_t bytes = proto::rings_bytes(kSubmitCapacity, kDoneCapacity);
  auto rings = SharedMemory::create("braid-rings", bytes, SharedMemory::Access::ReadWrite);
  if (!rings) return rings.status();
  rings_ = std::move(*rings);
  BRAID_RETURN_IF_ERROR(rings_.reserve(0, bytes));
  std::memset(rings_.data(), 0, bytes);  // pages of this process, which the kernel tells braidd of
  submit_wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  leader_wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!submit_wake_.is_valid() || !leader_wake_.is_valid()) {
    return Status::from_errno(errno, "cannot make an eventfd");
  }
  const RingsView view = braid::create_rings(rings_.data(), kSubmitCapacity, kDoneCapacity);
  submit_ = {&view.header->submit, view.submit, kSubmitCapacity};
  done_ = {&view.header->done, view.done, kDoneCapacity};
  return {};
}

const Status& Session::fail(Status reason) {
  if (!failure_.is_ok()) return failure_;
  failure_ = std::move(reason);
  wake_waiting();
  return failure_;
}

void Session::wake_waiting() {
  changed_.notify_all();
  if (has_leader_) signal_eventfd(leader_wake_.get());
}

uint64_t Session::end_of_patience() const {
  const uint32_t patience_ms = patience_ms_;
  return patience_ms == 0 ? UINT64_MAX : now_ns() + patience_ms * 1'000'000ull;
}

void Session::drain_done() {
  push_kept();
  bool any = false;
  proto::DoneEntry entry{};
  RingState state = RingState::Empty;
  while (failure_.is_ok() && (state = done_.pop(entry)) == RingState::Ready) {
    any = true;
    Status status = check_done_entry(entry);
    if (status) status = on_done_(entry);
    if (!status) fail(std::move(status));
  }
  if (any) {
    watch_.on_heard();
    changed_.notify_all();
  }
  if (state == RingState::Corrupt) {
    fail(Status(StatusCode::Protocol, "the done ring's indices are corrupt"));
  }
}

void Session::receive_messages() {
  while (failure_.is_ok()) {
    Received received;
    Status status = connection_.receive(received);
    if (status.is_ok() && received.message == nullptr) return;
    // What ended before the bad news has ended well.
    drain_done();
    if (!status) {
      // After the leave-taking the daemon may close the socket.
      fail(has_left_ ? Status(StatusCode::Cancelled, "the job was left") : std::move(status));
    } else {
      handle(*received.message);
    }
  }
}

void Session::handle(const proto::ClientMessage& message) {
  watch_.on_heard();
  const auto* tensors = message.body_as_TensorsRegistered();
  const auto* memory = message.body_as_MemoryRegistered();
  const bool is_unregistered = message.body_type() == proto::ClientBody::TensorsUnregistered;
  const auto* refused = message.body_as_RegistrationRefused();
  if (const auto* failure = message.body_as_Failure()) {
    fail(daemon_error(failure->code(), failure->text()));
  } else if (tensors != nullptr && registration_asked_ == proto::ClientBody::RegisterTensors) {
    answer_registration({{}, tensors->first_handle()});
  } else if (memory != nullptr && registration_asked_ == proto::ClientBody::RegisterMemory) {
    answer_registration({{}, memory->arena()});
  } else if (is_unregistered && registration_asked_ == proto::ClientBody::UnregisterTensors) {
    answer_registration({});
  } else if (refused != nullptr && registration_asked_ != proto::ClientBody::NONE) {
    answer_registration({daemon_error(refused->code(), refused->text()), 0});
  } else if (message.body_type() == proto::ClientBody::JobLeft && awaits_leave_) {
    has_left_ = true;
  } else {
    fail(make_status(StatusCode::Protocol, "braidd at '{}' sent an unexpected {}",
                     connection_.path(), proto::EnumNameClientBody(message.body_type())));
  }
  changed_.notify_all();
}

void Session::answer_registration(Registration answer) {
  registration_asked_ = proto::ClientBody::NONE;
  registration_ = std::move(answer);
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
    } else if (!poll_done_ring(lock, deadline_ns) && done_.prepare_sleep()) {
      lead(lock, polling_.mode() == PollingMode::Always ? 0 : std::min(timeout_ms, kWatchMs));
      watch_daemon();
    }
  }
}

// True: something has come. The others may submit meanwhile, and take what has come, too.
bool Session::poll_done_ring(std::unique_lock<std::mutex>& lock, uint64_t deadline_ns) {
  if (polling_.mode() == PollingMode::Adaptive && !done_.may_poll()) return false;
  uint64_t now = now_ns();
  const uint64_t window_ns = polling_.window_ns(now);
  if (window_ns == 0) return false;
  const RingConsumer<proto::DoneEntry> seen = done_;
  has_leader_ = true;
  lock.unlock();
  const PollOutcome outcome =
      poll_until(std::min(deadline_ns, now + window_ns), now, [&seen] { return seen.has_any(); });
  lock.lock();
  has_leader_ = false;
  changed_.notify_all();
  polling_.on_end(outcome, now);
  return outcome == PollOutcome::Came;
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
  Status unsent;
  if ((fds[1].revents & POLLOUT) != 0) unsent = connection_.flush();
  if (fds[1].revents != 0) receive_messages();  // first: it may say why it does not take more
  if (!unsent) fail(std::move(unsent));
}

void Session::watch_daemon() {
  switch (watch_.look(connection_.path(), now_ns())) {
    case DaemonWatch::News::Silent:
      say(
          fmt::format("this process waits{}. Is it stopped, or does it hang? 'systemctl status "
                      "braidd' and its log tell; 'kill -CONT' continues one that is stopped",
                      silence()));
      break;
    case DaemonWatch::News::Answers:
      say(fmt::format("braidd at '{}' answers again", connection_.path()));
      break;
    case DaemonWatch::News::None:
      break;
  }
}

std::string Session::silence() const {
  const uint64_t silent_ns = watch_.silent_ns(now_ns());
  if (silent_ns == 0) return {};
  return fmt::format("; braidd at '{}' (process {}) has not answered for {} s", connection_.path(),
                     connection_.daemon_process(), silent_ns / kSecondNs);
}

Status Session::push(std::unique_lock<std::mutex>& lock, const proto::SubmitEntry& entry,
                     uint64_t deadline_ns) {
  push_kept();
  while (failure_.is_ok()) {
    switch (submit_.state()) {
      case RingState::Ready:
        submit_.push(entry);
        return {};
      case RingState::Full:
        break;
      case RingState::Empty:
      case RingState::Corrupt:
        return fail(Status(StatusCode::Protocol, "the submit ring's indices are corrupt"));
    }
    const uint64_t now = now_ns();
    if (now >= deadline_ns) return ring_stayed_full();
    wake_daemon();
    wait_until(lock, std::min(deadline_ns, now + kRingFullPauseNs),
               [&] { return submit_.state() != RingState::Full; });
  }
  return failure_;
}

void Session::push_when_possible(const proto::SubmitEntry& entry) {
  kept_.push_back(entry);
  push_kept();
}

void Session::push_kept() {
  for (; failure_.is_ok() && !kept_.empty() && submit_.state() == RingState::Ready;
       kept_.pop_front()) {
    submit_.push(kept_.front());
  }
}

Status Session::push_all_kept(std::unique_lock<std::mutex>& lock, uint64_t deadline_ns) {
  push_kept();
  while (failure_.is_ok() && !kept_.empty()) {
    const uint64_t now = now_ns();
    if (now >= deadline_ns) return ring_stayed_full();
    wake_daemon();
    wait_until(lock, std::min(deadline_ns, now + kRingFullPauseNs),
               [&] { return submit_.state() != RingState::Full; });
    push_kept();
  }
  return failure_;
}

Status Session::ring_stayed_full() const {
  return make_status(StatusCode::DeadlineExceeded,
                     "braidd at '{}' does not answer: the submit ring ({} entries) stayed full",
                     connection_.path(), kSubmitCapacity);
}

void Session::wake_daemon() {
  if (submit_.take_wake_duty()) signal_eventfd(submit_wake_.get());
}

Status Session::ask(proto::ClientBody question, const flatbuffers::FlatBufferBuilder& message,
                    std::span<const int> fds) {
  if (!failure_.is_ok()) return failure_;
  // Another thread may be taking leave, and waiting without the mutex.
  if (awaits_leave_) return Status(StatusCode::Cancelled, "the job is being left");
  awaits_leave_ = question == proto::ClientBody::LeaveJob;
  if (!awaits_leave_) registration_asked_ = question;
  if (Status sent = connection_.send(message, fds); !sent) {
    receive_messages();  // the daemon may have said why it went away
    return failure_.is_ok() ? sent : failure_;
  }
  if (has_leader_)
    signal_eventfd(leader_wake_.get());  // the rest of it is the next leader's to send
  return {};
}

Status Session::tell(const flatbuffers::FlatBufferBuilder& message) {
  if (!failure_.is_ok()) return failure_;
  if (awaits_leave_ || connection_.has_unsent()) return {};
  // That the daemon has gone is found out by the next wait.
  (void)connection_.send(message);
  if (connection_.has_unsent() && has_leader_) signal_eventfd(leader_wake_.get());
  return {};
}

}  // namespace braid::client
