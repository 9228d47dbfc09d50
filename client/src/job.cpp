// SPDX-License-Identifier: Apache-2.0
#include "job.h"

#include <algorithm>
#include <utility>

#include "own_process.h"
#include "told_work.h"

namespace braid::client {
namespace {

constexpr uint64_t kLeaveTimeoutNs = 2'000'000'000;

}  // namespace

Status Job::start(const braid_job_options* options, std::unique_ptr<Job>& job) {
  JobRequest request;
  BRAID_RETURN_IF_ERROR(read_job_request(options, request));
  std::unique_ptr<Job> started(new Job(std::move(request)));
  BRAID_RETURN_IF_ERROR(started->opening_->begin());
  job = std::move(started);
  return {};
}

Job::Job(JobRequest request)
    : process_(own_process()),
      request_(std::move(request)),
      rank_(request_.rank),
      session_(request_.name),
      timeouts_(request_.timeout_ms),
      registry_(session_, timeouts_, request_.arena_bytes) {
  opening_.emplace(request_, session_, registry_.arenas());
}

Status Job::open() {
  bool is_new = false;
  // Within that time it is open, or there is an error.
  return open_within(UINT32_MAX, is_new);
}

Status Job::open_within(uint32_t timeout_ms, bool& is_new) {
  BRAID_RETURN_IF_ERROR(check_process());
  is_new = false;
  if (is_open()) return {};
  std::optional<Opened> opened;
  BRAID_RETURN_IF_ERROR(opening_->advance(now_ns() + timeout_ms * 1'000'000ull, opened));
  if (!opened) return {};
  opening_.reset();
  takes_work_ = opened->takes_work;
  nodes_ = opened->nodes;
  tickets_.emplace(session_, timeouts_, registry_, rank_, std::move(*opened));
  device_.emplace(session_, timeouts_, registry_, rank_, *tickets_,
                  [this](const Status& failure) { fail(failure); });
  is_new = true;
  return {};
}

Status Job::check_usable() const {
  if (is_open()) return check_process();
  return make_status(StatusCode::InvalidArgument,
                     "job '{}' is not open; call braid_open_wait until it is done",
                     session_.job_name());
}

Status Job::check_process() const {
  const pid_t self = own_process();
  if (self == process_) return {};
  return make_status(StatusCode::InvalidArgument,
                     "job '{}' belongs to process {}, this is {}: a job does not survive fork(); "
                     "open one in the child",
                     session_.job_name(), process_, self);
}

Status Job::leave(const char* reason) {
  BRAID_RETURN_IF_ERROR(check_process());
  if (!is_open()) return {};  // Its socket says it, when that is closed.
  {
    Lock lock(session_.mutex());
    leave_with(lock, reason == nullptr ? std::string() : reason, now_ns() + kLeaveTimeoutNs);
  }
  device_->stop(closed(), now_ns() + kLeaveTimeoutNs);
  return {};
}

void Job::leave_at_exit(uint64_t deadline_ns) {
  deadline_ns = std::min(deadline_ns, now_ns() + kLeaveTimeoutNs);
  {
    Lock lock = lock_until(session_.mutex(), deadline_ns);
    if (lock.owns_lock()) leave_with(lock, "its process has ended", deadline_ns);
  }
  device_->stop(closed(), deadline_ns);
}

Status Job::open_levels(void* stream, uint32_t timeout_ms, LevelChoice& choice) {
  return device_->open_levels(
      request_, stream, timeout_ms, [this] { return current_failure(); }, choice);
}

void Job::fail(const Status& failure) {
  const Lock lock(session_.mutex());
  if (!session_.failure().is_ok()) return;
  // Who closes its job leaves it: what it has submitted counts for the others.
  const bool fails_job = failure.code() != StatusCode::Cancelled;
  flatbuffers::FlatBufferBuilder builder;
  const auto body = proto::CreateLeaveJobDirect(builder, failure.message().c_str(), fails_job);
  (void)session_.ask(builder, body);
  session_.fail(failure);
}

Status Job::closed() const {
  return make_status(StatusCode::Cancelled, "job '{}' was closed", session_.job_name());
}

void Job::leave_with(Lock& lock, std::string reason, uint64_t deadline_ns) {
  if (!session_.failure().is_ok()) return;
  reason = refusal_.add_to(std::move(reason));
  flatbuffers::FlatBufferBuilder builder;
  const auto body = proto::CreateLeaveJobDirect(builder, reason.empty() ? nullptr : reason.c_str());
  if (session_.ask(builder, body).is_ok()) {
    // A daemon that does not answer, or that fails meanwhile, is no reason not to leave.
    session_.wait_until(lock, deadline_ns, [&] { return session_.has_left(); });
  }
  session_.fail(closed());
}

Status Job::current_failure() {
  const Lock lock(session_.mutex());
  session_.poll_once();
  return session_.failure();
}

Status Job::tell_work(const braid_work* work) {
  flatbuffers::FlatBufferBuilder builder;
  flatbuffers::Offset<proto::WorkTold> told;
  BRAID_RETURN_IF_ERROR(write_told_work(work, world_size(), now_ns(), builder, told));
  if (!takes_work_) return {};
  const Lock lock(session_.mutex());
  return session_.tell(builder, told);
}

void Job::set_timeout(uint32_t timeout_ms) {
  const Lock lock(session_.mutex());
  timeouts_.set_usual_ms(timeout_ms);
}

void Job::extend_timeout(uint32_t more_ms) {
  const Lock lock(session_.mutex());
  timeouts_.extend_ms(more_ms);
}

}  // namespace braid::client
