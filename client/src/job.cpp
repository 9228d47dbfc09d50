// SPDX-License-Identifier: Apache-2.0
#include "job.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <unistd.h>

#include "base/checked.h"
#include "options.h"
#include "proto/types.h"

namespace braid::client {
namespace {

constexpr const char* kDefaultSocket = "/run/braid/braidd.sock";
constexpr uint32_t kDefaultTimeoutMs = 300'000;
constexpr uint64_t kDefaultArenaBytes = 16ull << 30;
constexpr uint64_t kArenaBytesMax = 1ull << 46;
constexpr uint64_t kResultBytesMax = 1ull << 46;
constexpr uint32_t kWorldSizeMax = 65536;
constexpr size_t kNameBytesMax = 255;
constexpr size_t kTokenBytesMax = 255;
constexpr size_t kFirstOptionsBytes = offsetof(braid_job_options, token);
// The daemon enforces timeouts and says what was missing; only when it hangs, the client gives up
// by itself, this much later.
constexpr uint64_t kGraceNs = 5'000'000'000;
constexpr uint64_t kLeaveTimeoutNs = 2'000'000'000;
constexpr useconds_t kLockPauseUs = 1000;
constexpr uint64_t kPageBytes = 4096;

Error check_text(const char* text, const char* field) {
  const size_t length = text == nullptr ? 0 : ::strnlen(text, kNameBytesMax + 1);
  if (length == 0 || length > kNameBytesMax) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, field,
                      text == nullptr ? " is NULL" : " has the wrong length",
                      "; it must have 1 to ", kNameBytesMax, " bytes");
  }
  return {};
}

Error check(const braid_job_options& options) {
  if (Error error = check_text(options.name, "name"); !error) return error;
  if (Error error = check_text(options.master_address, "master_address"); !error) return error;
  if (options.world_size == 0 || options.world_size > kWorldSizeMax) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "world_size is ", options.world_size, "; 1 to ",
                      kWorldSizeMax, " are possible");
  }
  if (options.rank >= options.world_size) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "rank is ", options.rank, "; with world_size ",
                      options.world_size, " ranks are 0 to ", options.world_size - 1);
  }
  if (options.arena_bytes > kArenaBytesMax) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "arena_bytes is ", options.arena_bytes,
                      "; at most ", kArenaBytesMax, " are possible");
  }
  return {};
}

std::string socket_path(const braid_job_options& options) {
  if (options.socket_path != nullptr) return options.socket_path;
  const char* from_environment = std::getenv("BRAID_SOCKET");
  return from_environment != nullptr && *from_environment != '\0' ? from_environment
                                                                  : kDefaultSocket;
}

Error read_weight(uint32_t& weight) {
  const char* given = std::getenv("BRAID_JOB_WEIGHT");
  const std::string_view text = given == nullptr ? "" : given;
  weight = 1;
  if (text.empty()) return {};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, weight);
  if (error == std::errc() && rest == end && weight >= 1 && weight <= kJobWeightMax) return {};
  return make_error(BRAID_ERROR_INVALID_ARGUMENT, "BRAID_JOB_WEIGHT is '", text,
                    "'; a job's weight is a whole number from 1 to ", kJobWeightMax);
}

// The job's secret: as given, else from the environment; empty: none.
Error read_token(const braid_job_options& options, std::string_view& token) {
  const bool is_given = options.token != nullptr && *options.token != '\0';
  const char* text = is_given ? options.token : std::getenv("BRAID_JOB_TOKEN");
  token = text == nullptr ? "" : std::string_view(text, ::strnlen(text, kTokenBytesMax + 1));
  if (token.size() <= kTokenBytesMax) return {};
  // The token itself is nobody's to read, in no log.
  return make_error(BRAID_ERROR_INVALID_ARGUMENT, is_given ? "token" : "BRAID_JOB_TOKEN",
                    " is too long; a job's token has ", kTokenBytesMax, " bytes at most");
}

}  // namespace

std::unique_lock<std::mutex> lock_until(std::mutex& mutex, uint64_t deadline_ns) {
  std::unique_lock lock(mutex, std::try_to_lock);
  while (!lock.owns_lock() && now_ns() < deadline_ns) {
    ::usleep(kLockPauseUs);
    (void)lock.try_lock();
  }
  return lock;
}

Error Job::open(const braid_job_options* options, std::unique_ptr<Job>& job) {
  braid_job_options given{};
  if (Error error = read_options(options, "braid_job_options", given, kFirstOptionsBytes); !error)
    return error;
  if (Error error = check(given); !error) return error;
  std::unique_ptr<Job> opened(new Job());
  if (Error error = opened->connect(given); !error) return error;
  job = std::move(opened);
  return {};
}

Error Job::connect(const braid_job_options& options) {
  if (Error error = read_weight(weight_); !error) return error;
  process_ = ::getpid();
  name_ = options.name;
  rank_ = {options.rank, options.world_size};
  timeout_ms_ = options.timeout_ms != 0 ? options.timeout_ms : kDefaultTimeoutMs;
  const uint64_t deadline_ns = now_ns() + timeout_ms_ * 1'000'000ull;
  // First the daemon: without one there is no need for memory.
  if (Error error = session_.connection().open(socket_path(options), deadline_ns); !error)
    return error;
  const uint64_t arena_bytes = options.arena_bytes != 0 ? options.arena_bytes : kDefaultArenaBytes;
  if (Error error = arena_.create(round_up(arena_bytes, kPageBytes)); !error) return error;
  if (Error error = session_.create_rings(); !error) return error;
  return open_job(options, deadline_ns + kGraceNs);
}

Error Job::open_job(const braid_job_options& options, uint64_t deadline_ns) {
  std::string_view token;
  if (Error error = read_token(options, token); !error) return error;
  const std::vector<uint8_t> token_bytes(token.begin(), token.end());
  flatbuffers::FlatBufferBuilder builder;
  const auto open = proto::CreateOpenJobDirect(
      builder, options.name, options.rank, options.world_size, options.master_address, timeout_ms_,
      arena_.size(), Session::kSubmitCapacity, Session::kDoneCapacity, weight_, &token_bytes);
  builder.Finish(proto::CreateClientMessage(builder, proto::ClientBody::OpenJob, open.Union()));
  const int fds[] = {arena_.fd(), session_.rings_fd(), session_.submit_wake_fd()};
  Connection& connection = session_.connection();
  const Error sent = connection.send(builder, fds);
  Received received;
  Error error = connection.receive_until(deadline_ns, received);
  if (!error) {
    if (error.code == BRAID_ERROR_DEADLINE_EXCEEDED) {
      return make_error(error.code, error.text, ": job '", name_,
                        "' was neither opened nor refused within ", timeout_ms_, " ms");
    }
    return sent.is_ok() ? error : sent;
  }
  return accept_opened(std::move(received));
}

Error Job::accept_opened(Received received) {
  if (const auto* failure = received.message->body_as_Failure()) {
    return daemon_error(failure->code(), failure->text());
  }
  const auto refuse = [&](const std::string& what) {
    return make_error(BRAID_ERROR_PROTOCOL, "braidd at '", session_.socket_path(),
                      "' answered OpenJob with ", what);
  };
  const proto::JobOpened* opened = received.message->body_as_JobOpened();
  if (opened == nullptr) return refuse(proto::EnumNameClientBody(received.message->body_type()));
  if (received.frame.fds.size() != 2) {
    return refuse(std::to_string(received.frame.fds.size()) +
                  " descriptors instead of the result segment's and the done ring's wake-up's");
  }
  block_of_rank_.assign(opened->block_of_rank()->begin(), opened->block_of_rank()->end());
  std::vector<bool> seen(rank_.world_size, false);
  if (block_of_rank_.size() != rank_.world_size)
    return refuse("blocks for another number of ranks");
  for (uint32_t r = 0; r < rank_.world_size; ++r) {
    const uint32_t block = block_of_rank_[r];
    if (block >= rank_.world_size || seen[block])
      return refuse("blocks that are no permutation of the ranks");
    seen[block] = true;
    blocks_in_rank_order_ = blocks_in_rank_order_ && block == r;
  }
  auto results = Segment::adopt(std::move(received.frame.fds[0]), opened->result_bytes(),
                                kResultBytesMax, Segment::Access::ReadOnly, "result segment");
  if (!results) return from_ipc(results.error);
  results_ = std::move(results.value);
  session_.set_done_wake(std::move(received.frame.fds[1]));
  session_.begin([this](const proto::DoneEntry& entry) { return on_done(entry); });
  return {};
}

Error Job::check_process() const {
  if (::getpid() == process_) return {};
  return make_error(BRAID_ERROR_INVALID_ARGUMENT, "job '", name_, "' belongs to process ", process_,
                    ", this is ", ::getpid(),
                    ": a job does not survive fork(); open one in the child");
}

Error Job::leave(const char* reason) {
  if (Error error = check_process(); !error) return error;
  Lock lock(session_.mutex());
  leave_with(lock, reason, now_ns() + kLeaveTimeoutNs);
  return {};
}

void Job::leave_at_exit(uint64_t deadline_ns) {
  deadline_ns = std::min(deadline_ns, now_ns() + kLeaveTimeoutNs);
  Lock lock = lock_until(session_.mutex(), deadline_ns);
  if (lock.owns_lock()) leave_with(lock, "its process has ended", deadline_ns);
}

void Job::leave_with(Lock& lock, const char* reason, uint64_t deadline_ns) {
  if (!session_.failure().is_ok()) return;
  flatbuffers::FlatBufferBuilder builder;
  const auto leave = proto::CreateLeaveJobDirect(builder, reason);
  builder.Finish(proto::CreateClientMessage(builder, proto::ClientBody::LeaveJob, leave.Union()));
  if (session_.send(builder).is_ok()) {
    // A daemon that does not answer, or that fails meanwhile, is no reason not to leave.
    session_.wait_until(lock, deadline_ns, [&] { return session_.has_left(); });
  }
  session_.fail(make_error(BRAID_ERROR_CANCELLED, "job '", name_, "' was closed"));
}

Error Job::register_tensors(const braid_tensor_options* options, size_t count, uint32_t* handles) {
  if (Error error = check_process(); !error) return error;
  if (handles == nullptr) return make_error(BRAID_ERROR_INVALID_ARGUMENT, "tensors is NULL");
  const std::lock_guard registration(register_mutex_);
  Lock lock(session_.mutex());
  std::vector<Tensor> tensors;
  if (Error error = tensors_.parse(options, count, tensors); !error) return error;
  if (!session_.failure().is_ok()) return session_.failure();

  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<proto::TensorDescription>> descriptions;
  descriptions.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    descriptions.push_back(proto::CreateTensorDescriptionDirect(
        builder, tensor.name.c_str(), static_cast<uint8_t>(tensor.dtype), tensor.count,
        tensor.backward_order, tensor.dynamic, tensor.planned));
  }
  const auto body = proto::CreateRegisterTensorsDirect(builder, &descriptions);
  builder.Finish(
      proto::CreateClientMessage(builder, proto::ClientBody::RegisterTensors, body.Union()));
  if (Error error = session_.send(builder); !error) return error;

  const uint64_t deadline_ns = now_ns() + timeout_ms_ * 1'000'000ull + kGraceNs;
  if (!session_.wait_until(lock, deadline_ns, [&] { return session_.has_registration(); })) {
    // The reply may still come, and would be taken for another registration's.
    session_.fail(make_error(BRAID_ERROR_DEADLINE_EXCEEDED, "braidd at '", session_.socket_path(),
                             "' does not answer: no reply to the registration of ", count,
                             " tensors within ", timeout_ms_, " ms"));
  }
  const auto reply = session_.take_registration();
  if (!reply) return session_.failure();
  if (!reply->refusal) return reply->refusal;
  const uint32_t first = tensors_.size();
  if (reply->first_handle != first) {
    session_.fail(make_error(BRAID_ERROR_PROTOCOL, "braidd gave the tensor handles from ",
                             reply->first_handle, " on; expected was ", first));
    return session_.failure();
  }
  tensors_.add(std::move(tensors));
  for (size_t i = 0; i < count; ++i) handles[i] = first + static_cast<uint32_t>(i);
  return {};
}

Error Job::allocate(size_t bytes, void** memory) {
  if (Error error = check_process(); !error) return error;
  if (memory == nullptr) return make_error(BRAID_ERROR_INVALID_ARGUMENT, "memory is NULL");
  uint64_t offset = 0;
  if (Error error = arena_.allocate(bytes, offset); !error) return error;
  *memory = arena_.at(offset);
  return {};
}

Error Job::free(void* memory) {
  if (Error error = check_process(); !error) return error;
  if (memory == nullptr) return {};
  bool fits = false;
  const auto offset = arena_.offset_of(memory, 0, fits);
  if (!offset || !arena_.release(*offset)) {
    return make_error(BRAID_ERROR_NOT_FOUND, "memory ", memory,
                      " was not given out by braid_allocate of job '", name_, "'");
  }
  return {};
}

}  // namespace braid::client
