// SPDX-License-Identifier: Apache-2.0
#include "levels/two_levels.h"

#include <atomic>
#include <utility>

#include <unistd.h>

#include "connection.h"
#include "job.h"
#include "left_behind.h"
#include "session.h"

namespace braid::client {
namespace {

constexpr useconds_t kGatheredPauseUs = 50;
constexpr uint8_t kFillByte = 0xFF;  // NaN in every type of floats
// How much later than the operation the one across ends: a local level that stands still is found
// first, and named.
constexpr uint64_t kAcrossGraceNs = 1'000'000'000;
// How long the job itself may take to say what ended an operation across: it knows all ranks.
constexpr uint64_t kBetterReasonNs = 500'000'000;
constexpr useconds_t kBetterReasonPauseUs = 10'000;
constexpr uint64_t kEndNs = 2'000'000'000;

}  // namespace

// An operation that LevelCut takes.
struct LevelOperation : DeviceOperation {
  using DeviceOperation::DeviceOperation;

  uint32_t number = 0;                                   // the words come to it
  std::atomic<bool> is_queued = false;                   // what follows stays from then on
  std::vector<std::shared_ptr<DeviceOperation>> across;  // those of its pieces
  CUevent is_over = nullptr;
  Status local_failure;  // with the mutex of two levels
};

Status TwoLevels::open(Owner owner, const LevelPlace& place, const CudaDriver& driver,
                       CUcontext context, std::unique_ptr<Job> across, uint32_t across_tensor,
                       std::unique_ptr<LocalLevel> local, std::unique_ptr<TwoLevels>& levels) {
  std::unique_ptr<TwoLevels> made(
      new TwoLevels(std::move(owner), place, std::move(across), across_tensor, std::move(local)));
  Job& job = *made->across_;
  // From the worker's thread, which calls nothing of CUDA: the watch does the rest.
  const auto on_failure = [&self = *made](const Status& failure) {
    self.watch_.end_for(self.in_words_of_all(failure));
  };
  BRAID_RETURN_IF_ERROR(
      DeviceLane::open(driver, context, job.tickets(), job.registry(), on_failure, made->lane_));
  const DeviceContext::Scope scope(made->lane_->device());
  BRAID_RETURN_IF_ERROR(scope.status());
  BRAID_RETURN_IF_ERROR(LevelMemory::make(driver, made->memory_));
  levels = std::move(made);
  return {};
}

TwoLevels::TwoLevels(Owner owner, const LevelPlace& place, std::unique_ptr<Job> across,
                     uint32_t across_tensor, std::unique_ptr<LocalLevel> local)
    : owner_(std::move(owner)),
      place_(place),
      across_(std::move(across)),
      across_tensor_(across_tensor),
      local_(std::move(local)),
      watch_([this] { return look(); }, [this](const Status& reason) { end(reason); }) {}

TwoLevels::~TwoLevels() {
  const Status closed(StatusCode::Cancelled, "the job was closed");
  if (lane_ != nullptr) lane_->stop(closed, now_ns() + kEndNs);
  local_->abort();
  watch_.stop();
  const bool is_idle = local_->close();
  if (memory_ != nullptr && lane_ != nullptr) {
    const DeviceContext::Scope scope(lane_->device());
    if (is_idle && scope.status().is_ok()) {
      memory_->release();
    } else {
      leave_behind(std::move(memory_));
    }
  }
  lane_.reset();
}

Status TwoLevels::submit(DeviceRequest request, std::shared_ptr<DeviceOperation>& submitted) {
  BRAID_RETURN_IF_ERROR(check(request));
  const auto operation = std::make_shared<LevelOperation>(std::move(request));
  const std::string& text = operation->request.text;
  const Status queued = lane_->submit_by(text, [&](DeviceSubmissions& submissions) {
    operation->number = ++last_number_;
    {
      // Before: NCCL may wait for other ranks when it is called.
      const std::lock_guard lock(mutex_);
      in_flight_.push_back(operation);
    }
    watch_.wake();
    Status status = queue(*operation, submissions);
    if (!status) watch_.end_for(status.with_context(text));
    return status;
  });
  if (!queued) {
    const Status reason = failure();
    return reason.is_ok() ? queued : reason;
  }
  operation->is_queued = true;
  submitted = operation;
  return {};
}

Status TwoLevels::check(const DeviceRequest& request) const {
  const bool has_result = request.result != 0 || !request.result_of_rank.empty();
  if (has_result || request.operation.count == 0) return {};
  return make_status(StatusCode::InvalidArgument,
                     "result of the {} is 0: in two levels each rank takes its result",
                     request.text);
}

Status TwoLevels::queue(LevelOperation& operation, DeviceSubmissions& submissions) {
  const LevelCut cut(operation.request, place_);
  std::vector<LevelPiece> pieces;
  BRAID_RETURN_IF_ERROR(wait_for(operation.request.stream, local_->before()));
  BRAID_RETURN_IF_ERROR(queue_before(operation, cut, submissions, pieces));
  return queue_after(operation, pieces, submissions);
}

Status TwoLevels::wait_for(CUstream stream, DeviceStream& waiting) {
  const CudaDriver& driver = lane_->device().driver();
  CUevent event = nullptr;
  BRAID_RETURN_IF_ERROR(lane_->streams().take_event(event));
  Status status = driver.check(driver.EventRecord(event, stream), "cuEventRecord");
  if (status) status = waiting.wait_for(event);
  lane_->streams().give_back(event);
  return status;
}

// All inputs, up to the host's memory.
Status TwoLevels::queue_before(LevelOperation& operation, const LevelCut& cut,
                               DeviceSubmissions& submissions, std::vector<LevelPiece>& pieces) {
  const braid_operation& asked = operation.request.operation;
  const auto dtype = static_cast<DataType>(asked.dtype);
  const auto reduction = static_cast<Reduction>(asked.reduction);
  DeviceStream& before = local_->before();
  for (uint32_t i = 0; i < cut.count(); ++i) {
    CUdeviceptr scratch = 0;
    BRAID_RETURN_IF_ERROR(memory_->place_scratch(cut.scratch_bytes(i), submissions.last_input() + 1,
                                                 lane_->streams().words().input_staged, before,
                                                 scratch));
    LevelPiece piece = cut.piece(i, scratch);
    BRAID_RETURN_IF_ERROR(local_->queue_before(piece.before, dtype, reduction));
    if (piece.across) {
      const auto across =
          std::make_shared<DeviceOperation>(across_request(operation.request, *piece.across));
      BRAID_RETURN_IF_ERROR(submissions.queue_input(across));
      operation.across.push_back(across);
    }
    pieces.push_back(std::move(piece));
  }
  return before.write(memory_->reduced(), operation.number);
}

// From the host's memory on.
Status TwoLevels::queue_after(LevelOperation& operation, const std::vector<LevelPiece>& pieces,
                              DeviceSubmissions& submissions) {
  const auto dtype = static_cast<DataType>(operation.request.operation.dtype);
  DeviceStream& after = local_->after();
  // Not all pieces are ones that the network brings.
  BRAID_RETURN_IF_ERROR(wait_for(local_->before().handle(), after));
  auto across = operation.across.begin();
  for (const LevelPiece& piece : pieces) {
    if (piece.across) {
      BRAID_RETURN_IF_ERROR(submissions.queue_results(**across));
      BRAID_RETURN_IF_ERROR(after.wait_for((*across)->results_are_there));
      lane_->release(*across++);
    }
    for (const DevicePart& part : piece.awaited)
      BRAID_RETURN_IF_ERROR(after.fill(part.memory, part.bytes, kFillByte));
    BRAID_RETURN_IF_ERROR(local_->queue_after(piece.after, dtype));
  }
  BRAID_RETURN_IF_ERROR(after.write(memory_->gathered(), operation.number));
  BRAID_RETURN_IF_ERROR(lane_->streams().take_event(operation.is_over));
  return after.record(operation.is_over);
}

DeviceRequest TwoLevels::across_request(const DeviceRequest& request, const AcrossStep& step) {
  DeviceRequest across{Pieces(step.piece)};
  across.operation = request.operation;
  across.operation.collective = static_cast<uint32_t>(step.collective);
  across.operation.tensor = across_tensor_;
  across.operation.step = next_across_step_++;
  across.operation.root = step.root;
  across.operation.count = step.count;
  across.input = step.input;
  across.result = step.result;
  across.result_of_rank = step.result_of_node;
  across.stream = local_->before().handle();
  across.stream_waits = true;
  across.is_dynamic = true;
  across.deadline_ns = request.deadline_ns + kAcrossGraceNs;
  across.text = request.text;
  return across;
}

Status TwoLevels::let_wait(const std::shared_ptr<DeviceOperation>& waited, CUstream stream) {
  const auto& operation = static_cast<const LevelOperation&>(*waited);
  const DeviceContext::Scope scope(lane_->device());
  BRAID_RETURN_IF_ERROR(scope.status());
  const CudaDriver& driver = lane_->device().driver();
  BRAID_RETURN_IF_ERROR(
      driver.check(driver.StreamWaitEvent(stream, operation.is_over, CU_EVENT_WAIT_DEFAULT),
                   "cuStreamWaitEvent"));
  // What has not come by now will not be what was asked for, if the job is over.
  return has_gathered(operation) ? outcome(operation) : failure();
}

Result<bool> TwoLevels::await(DeviceOperation& awaited, uint64_t deadline_ns) {
  const auto& operation = static_cast<const LevelOperation&>(awaited);
  while (!has_gathered(operation)) {
    if (now_ns() >= deadline_ns) return false;
    ::usleep(kGatheredPauseUs);
  }
  BRAID_RETURN_IF_ERROR(outcome(operation));
  return true;
}

void TwoLevels::release(const std::shared_ptr<DeviceOperation>& operation) {
  lane_->streams().give_back(static_cast<const LevelOperation&>(*operation).is_over);
}

void TwoLevels::stop(const Status& reason, uint64_t deadline_ns) {
  lane_->stop(reason, deadline_ns);
  across_->leave_at_exit(deadline_ns);
  const std::lock_guard lock(mutex_);
  // What is queued on the GPU needs the other ranks, and the watch to end without them.
  std::erase_if(in_flight_, [&](const auto& operation) { return has_gathered(*operation); });
  if (!in_flight_.empty()) watch_.end_for(reason);
}

// Whether there is work; an error: it does not go on. From the watch's thread.
Result<bool> TwoLevels::look() {
  BRAID_RETURN_IF_ERROR(owner_.failure());
  BRAID_RETURN_IF_ERROR(look_at_network());
  BRAID_RETURN_IF_ERROR(local_->error());
  std::shared_ptr<LevelOperation> oldest;
  {
    const std::lock_guard lock(mutex_);
    while (!in_flight_.empty() && has_gathered(*in_flight_.front())) in_flight_.pop_front();
    if (in_flight_.empty()) return false;
    oldest = in_flight_.front();
  }
  BRAID_RETURN_IF_ERROR(look_at(*oldest));
  return true;
}

Status TwoLevels::look_at_network() {
  const Status failure = across_->current_failure();
  return failure.is_ok() ? failure : in_words_of_all(failure);
}

// What has ended the job across names its ranks, of which each stands for a node.
Status TwoLevels::in_words_of_all(const Status& failure) const {
  if (failure.code() == StatusCode::Cancelled) return failure;
  return failure.with_context(fmt::format("between nodes, where rank 1 stands for ranks {} to {}",
                                          place_.rank_of(1, 0),
                                          place_.rank_of(1, place_.node_ranks - 1)));
}

Status TwoLevels::look_at(const LevelOperation& operation) const {
  const DeviceRequest& request = operation.request;
  if (now_ns() < request.deadline_ns) return {};
  Status standing = make_status(
      StatusCode::DeadlineExceeded,
      "{} has not ended its part of the {} in time: a rank of the node has not come to it, or a "
      "GPU stands still",
      local_->name(), request.text);
  if (!operation.is_queued || !has_reached(memory_->reduced().load(), operation.number))
    return standing;
  const Word& result_over = lane_->streams().words().result_over;
  for (const auto& across : operation.across)
    if (!has_reached(result_over.load(), across->last_result)) return {};
  return has_gathered(operation) ? Status() : standing;
}

bool TwoLevels::has_gathered(const LevelOperation& operation) const {
  return has_reached(memory_->gathered().load(), operation.number);
}

// The job knows more, if it has come to know.
Status TwoLevels::failure() const {
  const Status failure = owner_.failure();
  return failure.is_ok() ? watch_.reason() : failure;
}

Status TwoLevels::outcome(const LevelOperation& operation) {
  for (const auto& across : operation.across) {
    const Result<bool> ended = lane_->await(*across, 0);
    BRAID_RETURN_IF_ERROR(ended.status());
  }
  const std::lock_guard lock(mutex_);
  return operation.local_failure;
}

// From the watch's thread, which may be held up by CUDA. First nothing is given to the network any
// more: what NCCL leaves when it gives up is no sum.
void TwoLevels::end(const Status& found) {
  Status reason = found;
  const uint64_t until_ns = now_ns() + kBetterReasonNs;
  while (found.code() != StatusCode::Cancelled && owner_.failure().is_ok() && now_ns() < until_ns &&
         !across_->current_failure().is_ok())
    ::usleep(kBetterReasonPauseUs);
  if (const Status failure = owner_.failure(); !failure.is_ok()) reason = failure;
  bool is_idle = true;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& operation : in_flight_) {
      if (has_gathered(*operation)) continue;
      operation->local_failure = reason;
      is_idle = false;
    }
  }
  lane_->fail(reason);
  owner_.fail(reason);
  across_->fail(reason);
  // At the end of a process CUDA may be gone already.
  if (!is_idle || reason.code() != StatusCode::Cancelled) local_->abort();
}

}  // namespace braid::client
