// SPDX-License-Identifier: Apache-2.0
#include "ipc/descriptor_closer.h"

#include <csignal>
#include <ctime>
#include <deque>
#include <optional>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include <sys/syscall.h>
#include <unistd.h>

#include "base/mutex.h"

// Of Linux; older C libraries don't name it.
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace braid {
namespace {

// The signal that ends a lingering close(). By itself it does nothing to a process.
constexpr int kNudge = SIGURG;

void on_nudge(int) {}

// So that kNudge interrupts a system call at all; only the closer's threads get it.
void take_nudges() {
  struct sigaction now {};
  if (::sigaction(kNudge, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
  struct sigaction action {};
  action.sa_handler = on_nudge;
  ::sigaction(kNudge, &action, nullptr);
}

// The calling thread is sent kNudge again and again while this lives; no other signal reaches it.
class Nudges {
 public:
  Nudges() {
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, kNudge);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = kNudge;
    event.sigev_notify_thread_id = static_cast<pid_t>(::syscall(SYS_gettid));
    // Without a timer a lingering socket takes as long as its owner said.
    is_made_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    if (!is_made_) return;
    constexpr long kNs = DescriptorCloser::kNudgeMs * 1'000'000L;
    const itimerspec period{{0, kNs}, {0, kNs}};
    ::timer_settime(timer_, 0, &period, nullptr);
  }
  Nudges(const Nudges&) = delete;
  Nudges& operator=(const Nudges&) = delete;
  ~Nudges() {
    if (is_made_) ::timer_delete(timer_);
  }

 private:
  timer_t timer_{};
  bool is_made_ = false;
};

}  // namespace

// Outlives the closer while a thread is in close().
struct DescriptorCloser::State {
  struct Owner {
    std::deque<Fd> fds;
    bool is_served = false;  // by a thread
    size_t waiting() const { return fds.size() + (is_served ? 1 : 0); }
  };
  struct Turn {
    uid_t owner;
    Fd fd;
  };

  explicit State(std::function<void(Fd)> close_one) : close(std::move(close_one)) {}
  // What no thread could be had for is left to the end of the process: nobody may wait here.
  ~State() {
    for (auto& [uid, owner] : owners) {
      for (Fd& fd : owner.fds) fd.release();
    }
  }

  // Until nobody is left whom no other thread serves.
  void run() {
    const Nudges nudges;
    while (auto turn = take()) {
      close(std::move(turn->fd));
      finish(turn->owner);
    }
  }
  // Nothing: the thread ends.
  std::optional<Turn> take() BRAID_EXCLUDES(mutex);
  void finish(uid_t owner) BRAID_EXCLUDES(mutex);

  const std::function<void(Fd)> close;
  Mutex mutex;
  std::unordered_map<uid_t, Owner> owners BRAID_GUARDED_BY(mutex);
  std::deque<uid_t> turns BRAID_GUARDED_BY(mutex);  // owners with descriptors that no thread serves
  size_t threads BRAID_GUARDED_BY(mutex) = 0;
  size_t waiting BRAID_GUARDED_BY(mutex) = 0;
};

std::optional<DescriptorCloser::State::Turn> DescriptorCloser::State::take() {
  MutexLock lock(mutex);
  if (turns.empty()) {
    --threads;
    return std::nullopt;
  }
  const uid_t uid = turns.front();
  turns.pop_front();
  Owner& owner = owners[uid];
  owner.is_served = true;
  Turn turn{uid, std::move(owner.fds.front())};
  owner.fds.pop_front();
  return turn;
}

void DescriptorCloser::State::finish(uid_t uid) {
  MutexLock lock(mutex);
  --waiting;
  Owner& owner = owners[uid];
  owner.is_served = false;
  if (owner.fds.empty()) {
    owners.erase(uid);
  } else {
    turns.push_back(uid);
  }
}

DescriptorCloser::DescriptorCloser(std::function<void(Fd)> close)
    : state_(std::make_shared<State>(std::move(close))) {
  take_nudges();
}

DescriptorCloser::~DescriptorCloser() = default;

void DescriptorCloser::close(uid_t owner, Fd fd) {
  if (!fd.is_valid()) return;
  MutexLock lock(state_->mutex);
  State::Owner& entry = state_->owners[owner];
  if (entry.fds.empty() && !entry.is_served) state_->turns.push_back(owner);
  entry.fds.push_back(std::move(fd));
  ++state_->waiting;
  if (state_->threads >= kThreadsMax || state_->turns.empty()) return;
  try {
    std::thread([state = state_] { state->run(); }).detach();
    ++state_->threads;
  } catch (const std::system_error&) {
    // There is no thread to be had now: the next call tries again.
  }
}

bool DescriptorCloser::is_full(uid_t owner) const {
  MutexLock lock(state_->mutex);
  const auto entry = state_->owners.find(owner);
  if (entry == state_->owners.end()) return false;
  return entry->second.waiting() >= kWaitingPerOwnerMax || state_->waiting >= kWaitingMax;
}

uid_t DescriptorCloser::fullest_owner() const {
  MutexLock lock(state_->mutex);
  uid_t fullest = 0;
  size_t most = 0;
  for (const auto& [uid, owner] : state_->owners) {
    if (owner.waiting() <= most) continue;
    most = owner.waiting();
    fullest = uid;
  }
  return fullest;
}

size_t DescriptorCloser::waiting() const {
  MutexLock lock(state_->mutex);
  return state_->waiting;
}

}  // namespace braid
