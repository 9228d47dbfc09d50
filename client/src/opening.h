// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "arenas.h"
#include "base/status.h"
#include "ipc/shared_memory.h"
#include "job_request.h"
#include "rank_blocks.h"
#include "session.h"

namespace braid::client {

// What the daemon says of a job whose ranks are all there.
struct Opened {
  SharedMemory results;
  RankBlocks blocks;
};

// A job on its way to being open: connect, ask the daemon, wait for the other ranks. One thread at
// a time; the job has it until it is open.
class Opening {
 public:
  Opening(JobRequest request, Session& session, Arenas& arenas);

  Status begin();
  // Goes on until then. `opened` is set once, when all ranks are there. The first error ends the
  // attempt, and all further calls give it.
  Status advance(uint64_t until_ns, std::optional<Opened>& opened);

 private:
  Status go_on(uint64_t until_ns, std::optional<Opened>& opened);
  Status ask();
  Status await_answer(uint64_t until_ns, std::optional<Opened>& opened);
  Status accept(Received received, Opened& opened);

  const JobRequest request_;
  Session& session_;
  Arenas& arenas_;
  uint64_t connect_deadline_ns_;
  bool is_asked_ = false;
  Status asked_;  // how sending the question went: the daemon may have said why it does not listen
  Status error_;  // what ended the attempt
};

}  // namespace braid::client
