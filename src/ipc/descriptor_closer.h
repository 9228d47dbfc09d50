// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <sys/types.h>

#include "base/fd.h"

namespace braid {

// Closes descriptors that strangers have handed over. close() of a socket with SO_LINGER, of a file
// on a slow file system, or of a Unix socket that has such a thing in its queue may take for ever,
// so no loop calls it: threads do, one at most for each owner, and kThreadsMax in all. They are
// there only while there is something to close. Those who hand over what cannot be closed wait for
// each other; others do not. Any thread.
class DescriptorCloser {
 public:
  static constexpr size_t kThreadsMax = 8;
  // See is_full().
  static constexpr size_t kWaitingPerOwnerMax = 256;
  static constexpr size_t kWaitingMax = 4096;  // of all owners
  // A close() that lingers is told so often that it is to end.
  static constexpr uint32_t kNudgeMs = 1;

  // `close`: what the threads call; for tests.
  explicit DescriptorCloser(std::function<void(Fd)> close = [](Fd) {});
  DescriptorCloser(const DescriptorCloser&) = delete;
  DescriptorCloser& operator=(const DescriptorCloser&) = delete;
  // Waits for nobody: what is not closed yet is left to the threads, or to the end of the process.
  ~DescriptorCloser();

  // `owner`: the user whose they are.
  void close(uid_t owner, Fd fd);
  // Nothing more should be taken from this user: too much of what he gave is still open.
  bool is_full(uid_t owner) const;
  size_t waiting() const;       // descriptors, those included that are being closed
  uid_t fullest_owner() const;  // who has most of them

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace braid
