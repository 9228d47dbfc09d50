// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <braid.h>

#include "arenas.h"
#include "base/status.h"
#include "ipc/shared_memory.h"
#include "operation.h"
#include "rank_blocks.h"
#include "session.h"

namespace braid::client {

// What braid_job_options and the environment ask for, checked and with defaults.
struct JobRequest {
  std::string name;
  Rank rank;
  std::string socket_path;
  std::string master_address;
  uint64_t master_node = 0;
  std::string token;  // empty: none
  uint32_t weight = 1;
  uint32_t timeout_ms = 0;
  uint64_t arena_bytes = 0;
};

Status read_job_request(const braid_job_options* options, JobRequest& request);

// What the daemon says of a job whose ranks are all there.
struct Opened {
  SharedMemory results;
  RankBlocks blocks;
  bool takes_work = false;      // it may be told of placed work
  uint32_t nodes = 0;           // 0: the daemon does not say
  bool takes_messages = false;  // it carries messages between two ranks
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
