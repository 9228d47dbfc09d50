// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <braid.h>

#include "arenas.h"
#include "base/status.h"
#include "session.h"
#include "tensor_table.h"
#include "timeouts.h"

namespace braid::client {

// What one rank has registered with its daemon: tensors and input arenas. When no arena has room,
// it registers another one. One registration at a time waits for its reply. Any thread; it lives as
// long as its job.
class Registry {
 public:
  Registry(Session& session, const Timeouts& timeouts, uint64_t arena_bytes)
      : session_(session), timeouts_(timeouts), arenas_(arena_bytes) {}

  Status register_tensors(const braid_tensor_options* options, size_t count, uint32_t* handles);
  // `check_unused` is called with the session's mutex held; the tensors stay if it gives an error.
  Status unregister_tensors(const uint32_t* handles, size_t count,
                            const std::function<Status()>& check_unused);

  // With no mutex held: the arenas may have to grow.
  Status allocate(uint64_t bytes, ArenaPlace& place);
  Status allocate(uint64_t bytes, void** memory);
  Status free(const void* memory);

  Arenas& arenas() { return arenas_; }
  // With the session's mutex held.
  TensorTable& tensors() { return tensors_; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  Status ask_for_arena(uint64_t bytes);
  Status await_arena(uint64_t until_ns);
  uint64_t deadline() const;
  Status await_answer(Lock& lock, const std::string& what, uint64_t deadline_ns, uint32_t& number);

  Session& session_;
  const Timeouts& timeouts_;
  TensorTable tensors_;
  Arenas arenas_;
  std::mutex mutex_;  // held from a question to its answer; taken before the session's
  // An arena that the daemon was asked to take and has not answered about: a call may have had no
  // patience left. The next registration waits for that answer first. With mutex_.
  std::unique_ptr<Arena> asked_arena_;
  uint64_t asked_arena_deadline_ns_ = 0;
};

}  // namespace braid::client
