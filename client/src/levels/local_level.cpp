// SPDX-License-Identifier: Apache-2.0
#include "levels/local_level.h"

#include <array>
#include <bit>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include <pthread.h>
#include <unistd.h>

#include "connection.h"

namespace braid::client {
namespace {

constexpr uint64_t kUseNs = 1'000'000'000;
constexpr uint64_t kCloseNs = 2'000'000'000;
constexpr useconds_t kLookAgainUs = 50;

NcclType nccl_type(DataType dtype) {
  switch (dtype) {
    case DataType::Float32:
      return NcclType::Float32;
    case DataType::Float64:
      return NcclType::Float64;
    case DataType::Float16:
      return NcclType::Float16;
    case DataType::BFloat16:
      return NcclType::Bfloat16;
    case DataType::Int32:
      return NcclType::Int32;
    case DataType::Int64:
      return NcclType::Int64;
    case DataType::Uint8:
      return NcclType::Uint8;
  }
  return NcclType::Uint8;
}

NcclReduction nccl_reduction(Reduction reduction) {
  switch (reduction) {
    case Reduction::Sum:
      return NcclReduction::Sum;
    case Reduction::Average:
      return NcclReduction::Average;
    case Reduction::Min:
      return NcclReduction::Min;
    case Reduction::Max:
      return NcclReduction::Max;
    case Reduction::Product:
      return NcclReduction::Product;
  }
  return NcclReduction::Sum;
}

// ncclCommInitRank has no deadline. So a thread calls it, and is left behind when the time is over,
// to clean up when NCCL returns.
struct Joining {
  std::mutex mutex;
  std::condition_variable changed;
  bool has_ended = false;
  bool is_left_behind = false;
  Status status;
  std::array<NcclComm, 2> communicators = {};
};

Status join_all(const Nccl& nccl, const DeviceContext& device, const LevelPlace& place,
                const LocalIds& ids, std::array<NcclComm, 2>& communicators) {
  const DeviceContext::Scope scope(device);
  BRAID_RETURN_IF_ERROR(scope.status());
  const std::array<NcclUniqueId, 2> each = {ids.before, ids.after};
  for (size_t i = 0; i < each.size(); ++i) {
    BRAID_RETURN_IF_ERROR(
        nccl.check(nccl.CommInitRank(&communicators[i], static_cast<int>(place.node_ranks), each[i],
                                     static_cast<int>(place.local_rank)),
                   "ncclCommInitRank"));
  }
  return {};
}

void abort_all(const Nccl& nccl, const std::array<NcclComm, 2>& communicators) {
  for (const NcclComm communicator : communicators)
    if (communicator != nullptr) (void)nccl.CommAbort(communicator);
}

std::string name_of(const LevelPlace& place) {
  return fmt::format("NCCL between ranks {} to {}", place.rank_of(place.node, 0),
                     place.rank_of(place.node, place.node_ranks - 1));
}

void* pointer(CUdeviceptr memory) { return std::bit_cast<void*>(memory); }

}  // namespace

Status LocalLevel::make_ids(const Nccl& nccl, LocalIds& ids) {
  BRAID_RETURN_IF_ERROR(nccl.check(nccl.GetUniqueId(&ids.before), "ncclGetUniqueId"));
  return nccl.check(nccl.GetUniqueId(&ids.after), "ncclGetUniqueId");
}

Status LocalLevel::open(const Nccl& nccl, const DeviceContext& device, const LevelPlace& place,
                        const LocalIds& ids, uint64_t deadline_ns,
                        std::unique_ptr<LocalLevel>& level) {
  std::unique_ptr<LocalLevel> opened(new LocalLevel(nccl, device, place));
  BRAID_RETURN_IF_ERROR(opened->join(place, ids, deadline_ns));
  const DeviceContext::Scope scope(device);
  BRAID_RETURN_IF_ERROR(scope.status());
  BRAID_RETURN_IF_ERROR(opened->before_.stream.open());
  BRAID_RETURN_IF_ERROR(opened->after_.stream.open());
  level = std::move(opened);
  return {};
}

LocalLevel::LocalLevel(const Nccl& nccl, const DeviceContext& device, const LevelPlace& place)
    : nccl_(nccl),
      device_(device),
      name_(name_of(place)),
      before_(device.driver()),
      after_(device.driver()) {}

Status LocalLevel::join(const LevelPlace& place, const LocalIds& ids, uint64_t deadline_ns) {
  const auto joining = std::make_shared<Joining>();
  // By value: it may be left behind.
  std::thread thread([joining, &nccl = nccl_, device = device_, place, ids] {
    std::array<NcclComm, 2> communicators = {};
    const Status status = join_all(nccl, device, place, ids, communicators);
    std::unique_lock lock(joining->mutex);
    joining->status = status;
    joining->communicators = communicators;
    joining->has_ended = true;
    joining->changed.notify_all();
    const bool is_nobodys = joining->is_left_behind || !status.is_ok();
    lock.unlock();
    if (is_nobodys) abort_all(nccl, communicators);
  });
  (void)::pthread_setname_np(thread.native_handle(), "braid-nccl-join");
  thread.detach();
  std::unique_lock lock(joining->mutex);
  const auto until = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline_ns));
  if (!joining->changed.wait_until(lock, until, [&] { return joining->has_ended; })) {
    joining->is_left_behind = true;
    return make_status(StatusCode::DeadlineExceeded,
                       "{} has not begun in time: ncclCommInitRank has not returned", name_);
  }
  BRAID_RETURN_IF_ERROR(joining->status.with_context(name_));
  before_.communicator = joining->communicators[0];
  after_.communicator = joining->communicators[1];
  return {};
}

Status LocalLevel::queue(Half& half, const std::vector<LocalStep>& steps, DataType dtype,
                         Reduction reduction) {
  if (steps.empty()) return {};
  BRAID_RETURN_IF_ERROR(begin_use());
  Status status = nccl_.check(nccl_.GroupStart(), "ncclGroupStart");
  const bool has_begun = status.is_ok();
  for (const LocalStep& step : steps)
    if (status) status = call(half, step, nccl_type(dtype), nccl_reduction(reduction));
  if (has_begun) {
    // Also after an error.
    const Status ended = nccl_.check(nccl_.GroupEnd(), "ncclGroupEnd");
    if (status) status = ended;
  }
  end_use();
  return status ? status : status.with_context(name_);
}

Status LocalLevel::begin_use() const {
  const std::lock_guard lock(mutex_);
  if (is_aborted_) return make_status(StatusCode::Cancelled, "{} has ended", name_);
  ++uses_;
  return {};
}

void LocalLevel::end_use() const {
  {
    const std::lock_guard lock(mutex_);
    --uses_;
  }
  unused_.notify_all();
}

Status LocalLevel::call(const Half& half, const LocalStep& step, NcclType type,
                        NcclReduction reduction) {
  const void* from = pointer(step.from);
  void* to = pointer(step.to);
  const NcclComm communicator = half.communicator;
  const CUstream stream = half.stream.handle();
  const int root = static_cast<int>(step.root);
  switch (step.kind) {
    case LocalStep::Kind::ReduceScatter:
      return nccl_.check(
          nccl_.ReduceScatter(from, to, step.count, type, reduction, communicator, stream),
          "ncclReduceScatter");
    case LocalStep::Kind::AllGather:
      return nccl_.check(nccl_.AllGather(from, to, step.count, type, communicator, stream),
                         "ncclAllGather");
    case LocalStep::Kind::Reduce:
      return nccl_.check(
          nccl_.Reduce(from, to, step.count, type, reduction, root, communicator, stream),
          "ncclReduce");
    case LocalStep::Kind::Broadcast:
      return nccl_.check(nccl_.Broadcast(from, to, step.count, type, root, communicator, stream),
                         "ncclBroadcast");
  }
  return {};
}

Status LocalLevel::error() const {
  if (!begin_use()) return {};
  Status status;
  for (const Half* half : {&before_, &after_}) {
    NcclResult error = NcclResult::Success;
    if (status) {
      status =
          nccl_.check(nccl_.CommGetAsyncError(half->communicator, &error), "ncclCommGetAsyncError");
    }
    if (status && error != NcclResult::InProgress) status = nccl_.check(error, "work on the GPU");
  }
  end_use();
  return status ? status : status.with_context(name_);
}

void LocalLevel::abort() {
  {
    std::unique_lock lock(mutex_);
    if (std::exchange(is_aborted_, true)) return;
    // A call that is held up by the GPU goes on when NCCL gives up.
    unused_.wait_for(lock, std::chrono::nanoseconds(kUseNs), [&] { return uses_ == 0; });
  }
  const DeviceContext::Scope scope(device_);
  if (!scope.status().is_ok()) return;
  abort_all(nccl_, {before_.communicator, after_.communicator});
}

bool LocalLevel::await_idle() {
  const uint64_t deadline_ns = now_ns() + kCloseNs;
  for (const Half* half : {&before_, &after_}) {
    while (half->stream.handle() != nullptr) {
      const Result<bool> idle = half->stream.is_idle();
      if (!idle || (!*idle && now_ns() >= deadline_ns)) return false;
      if (*idle) break;
      ::usleep(kLookAgainUs);
    }
  }
  return true;
}

LocalLevel::~LocalLevel() { (void)close(); }

// Not by ncclCommDestroy, for which other ranks may be needed.
bool LocalLevel::close() {
  abort();
  const DeviceContext::Scope scope(device_);
  if (!scope.status().is_ok() || !await_idle()) return false;
  before_.stream.close();
  after_.stream.close();
  return true;
}

}  // namespace braid::client
