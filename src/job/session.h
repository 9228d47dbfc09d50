// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/log.h"
#include "ipc/client_connection.h"
#include "ipc/daemon_rings.h"
#include "ipc/user_quotas.h"
#include "job/input_arenas.h"
#include "job/open_request.h"
#include "job/registration.h"
#include "job/submission_turns.h"
#include "job/tensor_table.h"
#include "job/trainer_submissions.h"
#include "job/unregistration.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "loop/work_thread.h"
#include "operation/gathered_operation.h"
#include "operation/message_table.h"
#include "operation/result_memory.h"

namespace braid {

class Job;

struct SessionLimits {
  uint64_t arena_bytes_max = 0;       // of a trainer's arenas together
  uint32_t operation_timeout_ms = 0;  // for operations that give none
  // A trainer whose job is over has this long to close its connection: one that is stopped must not
  // keep memory and a place for ever.
  uint32_t farewell_ms = 10'000;
  std::shared_ptr<UserQuotas> quotas{};    // none: users are not told apart
  PollingMode polling = PollingMode::Off;  // how the trainer's threads wait
  CodecKinds codecs = CodecKinds().set();  // that tensors may have
};

// One trainer's membership: its connection, rings, arenas and tensors. Checks everything that comes
// through the rings and hands it to the job. Control loop only; owned by the JobManager, which
// destroys it when the connection has closed.
//
//   Joining --opened by the job--> Member --LeaveJob, its ring is empty--> Left
//      |                             |
//      +------ fail ---------------> Failed
class Session final : public ResultSink, public MessageSink {
 public:
  // Checks OpenJob and adopts its descriptors, three of the right kinds. `worker` outlives the
  // arenas, `turns` and `services` the session.
  static Result<std::unique_ptr<Session>> create(Loop& loop, WorkThread& worker,
                                                 SubmissionTurns& turns,
                                                 RegistrationServices services,
                                                 ClientConnection& connection,
                                                 const proto::OpenJob& open, std::vector<Fd> fds,
                                                 const SessionLimits& limits);
  ~Session() override;

  const std::string& job_name() const { return request_.identity.name; }
  LogFields log_fields() const { return {.job = {job_name(), credentials().uid}, .rank = rank()}; }
  const OpenRequest& request() const { return request_; }
  uint32_t rank() const { return request_.rank; }
  uint32_t world_size() const { return request_.world_size; }
  const ClientCredentials& credentials() const { return connection_.credentials(); }
  const std::shared_ptr<const InputArenas::List>& arenas() const { return arenas_.all(); }
  bool is_joining() const { return state_ == State::Joining; }
  bool is_leaving() const { return is_leaving_; }
  const std::string& leave_reason() const { return leave_reason_; }
  Job* job() const { return job_; }
  uint32_t local_rank() const { return local_rank_; }

  // From JobStart on, until it leaves or fails. `local_rank`: its place among the node's ranks.
  void join(Job& job, uint32_t local_rank) {
    job_ = &job;
    local_rank_ = local_rank;
  }
  // The job is running: tells the trainer and begins to take operations.
  void open(uint32_t epoch, std::shared_ptr<ResultMemory> results, const Ring& ring);
  // Registers tensors or memory, takes tensors out, tells of its work, leaves. False: the message
  // is nothing of this, or comes too early or too late.
  bool on_message(const proto::ClientMessage& message, std::vector<Fd>& fds);
  void publish(uint64_t ticket, uint64_t result_offset, uint64_t result_bytes) override;
  void publish_message(uint64_t ticket, uint64_t result_offset, uint64_t result_bytes,
                       uint32_t source) override;
  // The trainer hears why; the session is out of its job and does nothing any more.
  void fail(const Status& reason);
  // Where its threads wait as node.polling: adaptive says.
  void let_trainer_poll(bool may_poll) { rings_->let_client_poll(may_poll); }
  // Its process has gone, or let go of the session: it reads no result any more.
  void on_process_gone();
  void leave();
  // The place among the user's jobs that this one's ranks on this node share.
  void set_place(std::shared_ptr<UserCharge> place) { place_ = std::move(place); }

  // For the explanation of a missed deadline.
  std::string last_operation() const { return submissions_.last_operation(); }
  // The name behind a hash, if this trainer has registered it.
  const Tensor* find_tensor(uint64_t hash) const { return tensors_->find_hash(hash); }

 private:
  enum class State : uint8_t { Joining, Member, Left, Failed };

  Session(Loop& loop, SubmissionTurns& turns, RegistrationServices services,
          ClientConnection& connection, InputArenas arenas)
      : loop_(loop),
        turns_(turns),
        services_(services),
        connection_(connection),
        arenas_(std::move(arenas)),
        farewell_(loop) {}
  // `bytes` holds the message. If it is large, most is done later, and nothing else is read
  // meanwhile.
  void register_tensors(const proto::RegisterTensors& message, Registration::Bytes bytes);
  // What it has submitted before comes first; nothing else is read meanwhile.
  void unregister_tensors(const proto::UnregisterTensors& message);
  // One more arena: a descriptor of the right kind.
  void register_memory(uint64_t bytes, Fd memory);
  void take_work(const proto::WorkTold& told);
  // It leaves when all that it has submitted before was taken.
  void begin_leaving(const proto::LeaveJob& message);
  void answer_registration(const Result<uint32_t>& first);
  void refuse_registration(const Status& reason);
  Registration::Trainer as_registering();
  void begin_unregistration();
  void await_farewell();
  void end_submissions();
  size_t drain(size_t entries_max);

  Loop& loop_;
  SubmissionTurns& turns_;
  const RegistrationServices services_;
  const std::shared_ptr<Submitter> submitter_ = std::make_shared<Submitter>();
  ClientConnection& connection_;
  State state_ = State::Joining;
  bool is_leaving_ = false;
  std::string leave_reason_;
  Job* job_ = nullptr;
  OpenRequest request_;
  uint32_t local_rank_ = 0;
  InputArenas arenas_;
  std::shared_ptr<ResultMemory> results_;  // that the trainer may read
  std::unique_ptr<DaemonRings> rings_;
  UserCharge rings_charge_;
  std::shared_ptr<TensorTable> tensors_ = std::make_shared<TensorTable>();
  CodecKinds codecs_;  // that they may have
  TrainerSubmissions submissions_{request_, arenas_, *tensors_, rings_charge_};
  Timer farewell_;
  uint32_t farewell_ms_ = 0;
  PollingMode polling_ = PollingMode::Off;
  UserCharge tensors_charge_;
  UserCharge names_charge_;
  std::unique_ptr<Registration> registration_;  // a large one that is under way
  // What is to be taken out, once so many entries of the submit ring have been taken.
  struct Leaving {
    uint32_t first = 0;
    uint32_t count = 0;
    uint32_t entries_before = 0;
  };
  std::optional<Leaving> leaving_tensors_;
  std::unique_ptr<Unregistration> unregistration_;
  UserCharge descriptors_;  // but for the arenas'
  std::shared_ptr<UserCharge> place_;
};

}  // namespace braid
