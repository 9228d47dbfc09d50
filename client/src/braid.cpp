// SPDX-License-Identifier: Apache-2.0
// braid.h: the border between C and C++. No exception crosses it.
#include <exception>
#include <memory>
#include <new>

#include <braid.h>
#include <braid_work.h>

#include "error.h"
#include "job.h"
#include "open_jobs.h"
#include "questions.h"

using braid::Status;
using braid::StatusCode;
using braid::client::DeviceBuffers;
using braid::client::Job;
using braid::client::Tickets;

struct braid_job {
  std::unique_ptr<Job> job;
};

namespace {

template <typename Function>
int guarded(Function&& function) noexcept {
  try {
    return braid::client::report(function());
  } catch (const std::bad_alloc&) {
    return braid::client::report_out_of_memory();
  } catch (const std::exception& exception) {
    return braid::client::report_bug(exception.what());
  }
}

template <typename Function>
int with_job(const braid_job* job, Function&& function) noexcept {
  return guarded([&]() -> Status {
    if (job == nullptr) return Status(StatusCode::InvalidArgument, "job is NULL");
    BRAID_RETURN_IF_ERROR(job->job->check_usable());
    return function(*job->job);
  });
}

// The same for what asks something of the daemon that may be refused.
template <typename Function>
int asking_job(const braid_job* job, Function&& function) noexcept {
  return with_job(job, [&](Job& self) { return self.refusal().note(function(self)); });
}

// The same for calls that give out results in host memory.
template <typename Function>
int with_ticket(const braid_job* job, braid_ticket ticket, Function&& function) noexcept {
  return with_job(job, [&](Job& self) -> Status {
    if (!DeviceBuffers::is_device_ticket(ticket)) return function(self.tickets());
    return braid::make_status(StatusCode::InvalidArgument,
                              "ticket {} is of braid_submit_device: call braid_stream_wait for its "
                              "results, and braid_device_release",
                              ticket);
  });
}

// A job that is being opened; nothing where there is an error.
Status start(const braid_job_options* options, braid_job** job,
             std::unique_ptr<braid_job>& started) {
  if (job == nullptr) return Status(StatusCode::InvalidArgument, "job is NULL");
  *job = nullptr;
  started = std::make_unique<braid_job>();
  return Job::start(options, started->job);
}

}  // namespace

int braid_open(const braid_job_options* options, braid_job** job) {
  return guarded([&]() -> Status {
    std::unique_ptr<braid_job> started;
    BRAID_RETURN_IF_ERROR(start(options, job, started));
    BRAID_RETURN_IF_ERROR(started->job->open());
    braid::client::add_open_job(*started->job);
    *job = started.release();
    return {};
  });
}

int braid_open_start(const braid_job_options* options, braid_job** job) {
  return guarded([&]() -> Status {
    std::unique_ptr<braid_job> started;
    BRAID_RETURN_IF_ERROR(start(options, job, started));
    *job = started.release();
    return {};
  });
}

int braid_open_wait(braid_job* job, uint32_t timeout_ms, int* done) {
  return guarded([&]() -> Status {
    if (job == nullptr) return Status(StatusCode::InvalidArgument, "job is NULL");
    if (done == nullptr) return Status(StatusCode::InvalidArgument, "done is NULL");
    bool is_new = false;
    *done = 0;
    BRAID_RETURN_IF_ERROR(job->job->open_within(timeout_ms, is_new));
    if (is_new) braid::client::add_open_job(*job->job);
    *done = job->job->is_open() ? 1 : 0;
    return {};
  });
}

int braid_master(const char* socket_path, uint32_t timeout_ms, char* address, size_t bytes,
                 uint64_t* node) {
  return guarded(
      [&] { return braid::client::find_master(socket_path, timeout_ms, address, bytes, node); });
}

int braid_leave(braid_job* job, const char* reason) {
  return with_job(job, [reason](Job& self) { return self.leave(reason); });
}

int braid_close(braid_job* job) {
  const int code = guarded([job]() -> Status {
    if (job == nullptr) return Status(StatusCode::InvalidArgument, "job is NULL");
    braid::client::remove_open_job(*job->job);
    return job->job->leave(nullptr);
  });
  // In a forked child nothing is freed: the memory is the parent's as well.
  if (code == BRAID_OK) delete job;
  return code;
}

int braid_check(braid_job* job) {
  return with_job(job, [](Job& self) { return self.current_failure(); });
}

uint32_t braid_rank(const braid_job* job) { return job == nullptr ? 0 : job->job->rank(); }

uint32_t braid_world_size(const braid_job* job) {
  return job == nullptr ? 0 : job->job->world_size();
}

uint32_t braid_nodes(const braid_job* job) { return job == nullptr ? 0 : job->job->nodes(); }

int braid_register(braid_job* job, const braid_tensor_options* options, size_t tensor_count,
                   uint32_t* tensors) {
  return asking_job(job, [&](Job& self) {
    return self.registry().register_tensors(options, tensor_count, tensors);
  });
}

int braid_unregister(braid_job* job, const uint32_t* tensors, size_t tensor_count) {
  return asking_job(job, [&](Job& self) {
    return self.registry().unregister_tensors(tensors, tensor_count, [&]() -> Status {
      BRAID_RETURN_IF_ERROR(self.device().check_none_of(tensors[0], tensor_count));
      return self.tickets().check_none_of(tensors[0], tensor_count);
    });
  });
}

int braid_allocate(braid_job* job, size_t bytes, void** memory) {
  return asking_job(job, [&](Job& self) { return self.registry().allocate(bytes, memory); });
}

int braid_free(braid_job* job, void* memory) {
  return with_job(job, [&](Job& self) { return self.registry().free(memory); });
}

int braid_set_timeout(braid_job* job, uint32_t timeout_ms) {
  return with_job(job, [timeout_ms](Job& self) {
    self.set_timeout(timeout_ms);
    return Status();
  });
}

int braid_extend_timeout(braid_job* job, uint32_t more_ms) {
  return with_job(job, [more_ms](Job& self) {
    self.extend_timeout(more_ms);
    return Status();
  });
}

int braid_set_patience(braid_job* job, uint32_t patience_ms) {
  return with_job(job, [patience_ms](Job& self) {
    self.set_patience(patience_ms);
    return Status();
  });
}

int braid_submit(braid_job* job, const braid_operation* operation, braid_ticket* ticket) {
  return asking_job(job, [&](Job& self) { return self.tickets().submit(operation, ticket); });
}

int braid_send(braid_job* job, const braid_message* message, braid_ticket* ticket) {
  return asking_job(job, [&](Job& self) {
    return self.tickets().submit_message(message, braid::proto::SubmitKind::Send, ticket);
  });
}

int braid_receive(braid_job* job, const braid_message* message, braid_ticket* ticket) {
  return asking_job(job, [&](Job& self) {
    return self.tickets().submit_message(message, braid::proto::SubmitKind::Receive, ticket);
  });
}

int braid_source(braid_job* job, braid_ticket ticket, uint32_t* rank) {
  return with_ticket(job, ticket, [&](Tickets& tickets) { return tickets.source(ticket, rank); });
}

int braid_open_levels(braid_job* job, void* stream, uint32_t timeout_ms, uint32_t* levels,
                      char* reason, size_t bytes) {
  return with_job(job, [&](Job& self) -> Status {
    if (levels == nullptr) return Status(StatusCode::InvalidArgument, "levels is NULL");
    braid::client::LevelChoice choice;
    BRAID_RETURN_IF_ERROR(self.open_levels(stream, timeout_ms, choice));
    *levels = choice.levels;
    if (reason != nullptr && bytes != 0) reason[choice.reason.copy(reason, bytes - 1)] = '\0';
    return {};
  });
}

int braid_submit_device(braid_job* job, const braid_operation* operation,
                        const braid_device_buffers* buffers, braid_ticket* ticket) {
  return asking_job(job,
                    [&](Job& self) { return self.device().submit(operation, buffers, ticket); });
}

int braid_stream_wait(braid_job* job, braid_ticket ticket, void* stream) {
  return with_job(job, [&](Job& self) { return self.device().let_wait(ticket, stream); });
}

int braid_device_release(braid_job* job, braid_ticket ticket) {
  return with_job(job, [&](Job& self) { return self.device().release(ticket); });
}

int braid_test(braid_job* job, braid_ticket ticket, int* done) {
  return with_job(job, [&](Job& self) {
    return DeviceBuffers::is_device_ticket(ticket) ? self.device().test(ticket, done)
                                                   : self.tickets().test(ticket, done);
  });
}

int braid_wait(braid_job* job, braid_ticket ticket, uint32_t timeout_ms) {
  return with_job(job, [&](Job& self) {
    return DeviceBuffers::is_device_ticket(ticket) ? self.device().wait(ticket, timeout_ms)
                                                   : self.tickets().wait(ticket, timeout_ms);
  });
}

int braid_result(braid_job* job, braid_ticket ticket, const void** data, size_t* bytes) {
  return with_ticket(job, ticket,
                     [&](Tickets& tickets) { return tickets.result(ticket, data, bytes); });
}

int braid_result_of_rank(braid_job* job, braid_ticket ticket, uint32_t rank, const void** data,
                         size_t* bytes) {
  return with_ticket(job, ticket, [&](Tickets& tickets) {
    return tickets.result_of_rank(ticket, rank, data, bytes);
  });
}

int braid_copy_result(braid_job* job, braid_ticket ticket, void* out, size_t bytes) {
  return with_ticket(job, ticket,
                     [&](Tickets& tickets) { return tickets.copy_result(ticket, out, bytes); });
}

int braid_release(braid_job* job, braid_ticket ticket) {
  return with_ticket(job, ticket, [&](Tickets& tickets) { return tickets.release(ticket); });
}

int braid_take(braid_job* job, braid_ticket ticket, uint32_t timeout_ms, void* out, size_t bytes) {
  return with_ticket(
      job, ticket, [&](Tickets& tickets) { return tickets.take(ticket, timeout_ms, out, bytes); });
}

int braid_tell_work(braid_job* job, const braid_work* work) {
  return with_job(job, [work](Job& self) { return self.tell_work(work); });
}

int braid_name_job(const char* socket_path, const char* wanted, uint32_t timeout_ms, char* name,
                   size_t bytes) {
  return guarded(
      [&] { return braid::client::name_job(socket_path, wanted, timeout_ms, name, bytes); });
}

int braid_explain(const char* socket_path, const char* job_name, uint32_t timeout_ms, char* text,
                  size_t bytes) {
  return guarded(
      [&] { return braid::client::explain(socket_path, job_name, timeout_ms, text, bytes); });
}

const char* braid_error_message(void) { return braid::client::last_message(); }

const char* braid_error_name(int error) {
  static const char* const kNames[] = {
      "BRAID_OK",
      "BRAID_ERROR_INVALID_ARGUMENT",
      "BRAID_ERROR_NOT_FOUND",
      "BRAID_ERROR_ALREADY_EXISTS",
      "BRAID_ERROR_PERMISSION_DENIED",
      "BRAID_ERROR_UNAVAILABLE",
      "BRAID_ERROR_DEADLINE_EXCEEDED",
      "BRAID_ERROR_RESOURCE_EXHAUSTED",
      "BRAID_ERROR_MISMATCH",
      "BRAID_ERROR_JOB_FAILED",
      "BRAID_ERROR_PROTOCOL",
      "BRAID_ERROR_CANCELLED",
      "BRAID_ERROR_INTERNAL",
  };
  return error >= BRAID_OK && error <= BRAID_ERROR_INTERNAL ? kNames[error] : "BRAID_ERROR_UNKNOWN";
}

const char* braid_version(void) { return BRAID_VERSION; }
