// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <braid.h>
#include <sys/types.h>

#include "arenas.h"
#include "base/status.h"
#include "ipc/shared_memory.h"
#include "operation.h"
#include "session.h"
#include "tensor_table.h"
#include "timeouts.h"

namespace braid::client {

// The lock of `mutex`, unless it is held until the deadline, perhaps by this very thread.
std::unique_lock<std::mutex> lock_until(std::mutex& mutex, uint64_t deadline_ns);

// One rank's membership in one job: what a braid_job is. Any thread; the functions are those of
// braid.h.
class Job {
 public:
  // A job that is yet to be opened: by open(), or by open_within() again and again.
  static Status start(const braid_job_options* options, std::unique_ptr<Job>& job);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Waits until all ranks are there. The first error ends the attempt.
  Status open();
  // Waits so long at most. `is_new`: it is open now, and was not before.
  Status open_within(uint32_t timeout_ms, bool& is_new);
  Status check_open() const;

  // Takes leave of the daemon; destroying the job then frees everything. Does nothing a second
  // time.
  Status leave(const char* reason);
  // Of what asks something of the daemon. Who leaves after a refusal says so: others may wait for
  // what was refused.
  Status note_answer(Status answer);
  // The process ends, perhaps in the middle of a call on this job.
  void leave_at_exit(uint64_t deadline_ns);

  // What has ended the job, if it has failed.
  Status current_failure();

  uint32_t rank() const { return rank_.rank; }
  uint32_t world_size() const { return rank_.world_size; }

  Status register_tensors(const braid_tensor_options* options, size_t count, uint32_t* handles);
  Status unregister_tensors(const uint32_t* handles, size_t count);
  Status allocate(size_t bytes, void** memory);
  Status free(void* memory);

  Status set_timeout(uint32_t timeout_ms);
  Status extend_timeout(uint32_t more_ms);
  Status set_patience(uint32_t patience_ms);

  Status submit(const braid_operation* given, braid_ticket* ticket);
  Status test(braid_ticket ticket, int* done);
  Status wait(braid_ticket ticket, uint32_t timeout_ms);
  Status result(braid_ticket ticket, const void** data, size_t* bytes);
  Status result_of_rank(braid_ticket ticket, uint32_t rank, const void** data, size_t* bytes);
  Status copy_result(braid_ticket ticket, void* out, size_t bytes);
  Status release(braid_ticket ticket);
  Status take(braid_ticket ticket, uint32_t timeout_ms, void* out, size_t bytes);

 private:
  using Lock = std::unique_lock<std::mutex>;

  // How far opening has come.
  enum class Stage : uint8_t { Connecting, Asked, Open };

  Job() = default;
  Status begin(const braid_job_options& options);
  Status advance(uint64_t until_ns);
  Status ask_to_open();
  Status await_opened(uint64_t until_ns);
  Status accept_opened(Received received);
  Status check_process() const;
  void leave_with(Lock& lock, std::string reason, uint64_t deadline_ns);

  // Where the daemon finds what an operation reads.
  struct StagedInput {
    ArenaPlace place;
    uint64_t table = 0;  // offset of the request's, in the same arena
  };

  // When a call that waits for the daemon has no patience left.
  uint64_t end_of_patience() const;
  // With no mutex held: the arenas may have to grow.
  Status allocate_in_arenas(uint64_t bytes, ArenaPlace& place);
  Status ask_for_arena(uint64_t bytes);
  Status await_arena(uint64_t until_ns);
  uint64_t registration_deadline();
  Status check_given_back(uint32_t first, size_t count) const;
  Status await_registration(Lock& lock, const std::string& what, uint64_t deadline_ns,
                            uint32_t& number);
  Status admit(const Request& request);
  Status stage(Lock& lock, Operation& operation, StagedInput& input);
  Status stage_table_beside(const Request& request, StagedInput& input,
                            std::optional<ArenaPlace>& staged);
  Status stage_copies(const Request& request, StagedInput& input,
                      std::optional<ArenaPlace>& staged);
  void release_staged(Operation& operation);
  void copy_input(const Request& request, uint8_t* to) const;
  static proto::SubmitEntry entry_of(const Operation& operation, braid_ticket ticket,
                                     const StagedInput& input);
  void forget(braid_ticket ticket);
  Status on_done(const proto::DoneEntry& entry);

  Status find(braid_ticket ticket, Operation*& operation);
  Status find_result(braid_ticket ticket, Operation*& operation);
  Status overdue(const Operation& operation, uint32_t timeout_ms) const;

  pid_t process_ = 0;
  Stage stage_ = Stage::Connecting;
  Status open_error_;  // what ended the attempt
  uint64_t open_deadline_ns_ = 0;
  std::string master_address_;
  uint64_t master_node_ = 0;
  std::string token_;
  Status asked_;  // how sending the question went: the daemon may have said why it does not listen
  std::string name_;
  Rank rank_;
  uint32_t opened_timeout_ms_ = 0;
  uint32_t weight_ = 1;
  Arenas arenas_;
  SharedMemory results_;
  std::vector<uint32_t> block_of_rank_;
  bool blocks_in_rank_order_ = true;

  std::mutex register_mutex_;  // one registration at a time waits for its reply; taken before the
                               // session's
  // An arena that the daemon was asked to take and has not answered about: a call may have had no
  // patience left. Whoever registers something next waits for that answer first. With
  // register_mutex_.
  std::unique_ptr<Arena> asked_arena_;
  uint64_t asked_arena_deadline_ns_ = 0;
  std::atomic<uint32_t> patience_ms_ = 0;  // 0: without a limit
  Session session_;                        // its mutex guards everything below
  Timeouts timeouts_;
  TensorTable tensors_;
  braid_ticket next_ticket_ = 1;
  std::unordered_map<braid_ticket, Operation> operations_;

  std::atomic<bool> is_refused_{false};
  std::mutex refusal_mutex_;  // taken last
  std::string refusal_;       // of what was asked last
};

}  // namespace braid::client
