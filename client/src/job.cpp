// SPDX-License-Identifier: Apache-2.0
#include "job.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <unistd.h>

#include "base/checked.h"
#include "options.h"
#include "proto/types.h"

namespace braid::client {
namespace {

constexpr uint32_t kDefaultTimeoutMs = 300'000;
constexpr uint64_t kDefaultArenaBytes = 16ull << 30;
constexpr uint64_t kArenaBytesMax = 1ull << 46;
constexpr uint64_t kResultBytesMax = 1ull << 46;
constexpr uint32_t kWorldSizeMax = 65536;
constexpr size_t kNameBytesMax = 255;
constexpr size_t kTokenBytesMax = 255;
// The daemon enforces timeouts and says what was missing; only when it hangs, the client gives up
// by itself, this much later.
constexpr uint64_t kGraceNs = 5'000'000'000;
constexpr uint64_t kLeaveTimeoutNs = 2'000'000'000;
constexpr useconds_t kLockPauseUs = 1000;
constexpr size_t kRefusalBytesMax = 1000;

// Of what this rank asked for, and not of the job, which goes on.
bool is_refusal(const Status& status) {
  switch (status.code()) {
    case StatusCode::InvalidArgument:
    case StatusCode::NotFound:
    case StatusCode::AlreadyExists:
    case StatusCode::PermissionDenied:
    case StatusCode::ResourceExhausted:
    case StatusCode::Mismatch:
      return true;
    default:
      return false;
  }
}

Status check_text(const char* text, const char* field) {
  const size_t length = text == nullptr ? 0 : ::strnlen(text, kNameBytesMax + 1);
  if (length == 0 || length > kNameBytesMax) {
    return make_status(StatusCode::InvalidArgument, "{}{}; it must have 1 to {} bytes", field,
                       text == nullptr ? " is NULL" : " has the wrong length", kNameBytesMax);
  }
  return {};
}

Status check(const braid_job_options& options) {
  BRAID_RETURN_IF_ERROR(check_text(options.name, "name"));
  BRAID_RETURN_IF_ERROR(check_text(options.master_address, "master_address"));
  if (options.world_size == 0 || options.world_size > kWorldSizeMax) {
    return make_status(StatusCode::InvalidArgument, "world_size is {}; 1 to {} are possible",
                       options.world_size, kWorldSizeMax);
  }
  if (options.rank >= options.world_size) {
    return make_status(StatusCode::InvalidArgument,
                       "rank is {}; with world_size {} ranks are 0 to {}", options.rank,
                       options.world_size, options.world_size - 1);
  }
  if (options.arena_bytes > kArenaBytesMax) {
    return make_status(StatusCode::InvalidArgument, "arena_bytes is {}; at most {} are possible",
                       options.arena_bytes, kArenaBytesMax);
  }
  return {};
}

Status read_weight(uint32_t& weight) {
  const char* given = std::getenv("BRAID_JOB_WEIGHT");
  const std::string_view text = given == nullptr ? "" : given;
  weight = 1;
  if (text.empty()) return {};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, weight);
  if (error == std::errc() && rest == end && weight >= 1 && weight <= kJobWeightMax) return {};
  return make_status(StatusCode::InvalidArgument,
                     "BRAID_JOB_WEIGHT is '{}'; a job's weight is a whole number from 1 to {}",
                     text, kJobWeightMax);
}

// The job's secret: as given, else from the environment; empty: none.
Status read_token(const braid_job_options& options, std::string& token) {
  const bool is_given = options.token != nullptr && *options.token != '\0';
  const char* text = is_given ? options.token : std::getenv("BRAID_JOB_TOKEN");
  token = text == nullptr ? "" : std::string(text, ::strnlen(text, kTokenBytesMax + 1));
  if (token.size() <= kTokenBytesMax) return {};
  // The token itself is nobody's to read, in no log.
  return make_status(StatusCode::InvalidArgument,
                     "{} is too long; a job's token has {} bytes at most",
                     is_given ? "token" : "BRAID_JOB_TOKEN", kTokenBytesMax);
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

Status Job::start(const braid_job_options* options, std::unique_ptr<Job>& job) {
  braid_job_options given{};
  BRAID_RETURN_IF_ERROR(read_options(options, "braid_job_options", given));
  BRAID_RETURN_IF_ERROR(check(given));
  std::unique_ptr<Job> started(new Job());
  BRAID_RETURN_IF_ERROR(started->begin(given));
  job = std::move(started);
  return {};
}

Status Job::begin(const braid_job_options& options) {
  BRAID_RETURN_IF_ERROR(read_weight(weight_));
  BRAID_RETURN_IF_ERROR(read_token(options, token_));
  process_ = ::getpid();
  name_ = options.name;
  rank_ = {options.rank, options.world_size};
  master_address_ = options.master_address;
  master_node_ = options.master_node;
  opened_timeout_ms_ = options.timeout_ms != 0 ? options.timeout_ms : kDefaultTimeoutMs;
  timeouts_.set_usual_ms(opened_timeout_ms_);
  arenas_.set_limit(options.arena_bytes != 0 ? options.arena_bytes : kDefaultArenaBytes);
  const uint64_t deadline_ns = now_ns() + opened_timeout_ms_ * 1'000'000ull;
  open_deadline_ns_ = deadline_ns + kGraceNs;
  return session_.connection().begin(socket_path_of(options.socket_path), deadline_ns);
}

Status Job::open() {
  bool is_new = false;
  // Within that time it is open, or there is an error.
  return open_within(UINT32_MAX, is_new);
}

Status Job::open_within(uint32_t timeout_ms, bool& is_new) {
  BRAID_RETURN_IF_ERROR(check_process());
  is_new = false;
  if (stage_ == Stage::Open) return {};
  if (open_error_.is_ok()) open_error_ = advance(now_ns() + timeout_ms * 1'000'000ull);
  is_new = open_error_.is_ok() && stage_ == Stage::Open;
  return open_error_;
}

Status Job::check_open() const {
  if (stage_ == Stage::Open) return {};
  return make_status(StatusCode::InvalidArgument,
                     "job '{}' is not open; call braid_open_wait until it is done", name_);
}

Status Job::advance(uint64_t until_ns) {
  if (stage_ == Stage::Connecting) {
    // First the daemon: without one there is no need for memory.
    bool is_connected = false;
    BRAID_RETURN_IF_ERROR(session_.connection().advance(until_ns, is_connected));
    if (!is_connected) return {};
    BRAID_RETURN_IF_ERROR(session_.create_rings());
    BRAID_RETURN_IF_ERROR(ask_to_open());
    stage_ = Stage::Asked;
  }
  return await_opened(until_ns);
}

Status Job::ask_to_open() {
  const std::vector<uint8_t> token_bytes(token_.begin(), token_.end());
  std::unique_ptr<Arena> arena;
  BRAID_RETURN_IF_ERROR(arenas_.make(0, arena));
  flatbuffers::FlatBufferBuilder builder;
  const auto open = proto::CreateOpenJobDirect(
      builder, name_.c_str(), rank_.rank, rank_.world_size, master_address_.c_str(),
      opened_timeout_ms_, arena->size(), Session::kSubmitCapacity, Session::kDoneCapacity, weight_,
      &token_bytes, master_node_);
  builder.Finish(proto::CreateClientMessage(builder, proto::ClientBody::OpenJob, open.Union()));
  const int fds[] = {arena->fd(), session_.rings_fd(), session_.submit_wake_fd()};
  asked_ = session_.connection().send(builder, fds);
  arenas_.add(std::move(arena));
  // A daemon that is gone may have said why; await_opened() reads that. Else it was not asked.
  return asked_.code() == StatusCode::Unavailable ? Status() : asked_;
}

// The daemon's answer, or nothing by `until_ns`.
Status Job::await_opened(uint64_t until_ns) {
  Received received;
  Status answered =
      session_.connection().receive_until(std::min(until_ns, open_deadline_ns_), received);
  if (answered.code() == StatusCode::DeadlineExceeded) {
    if (now_ns() < open_deadline_ns_) return {};
    return make_status(answered.code(), "{}: job '{}' was neither opened nor refused within {} ms",
                       answered.message(), name_, opened_timeout_ms_);
  }
  if (!answered) return asked_.is_ok() ? answered : asked_;
  BRAID_RETURN_IF_ERROR(accept_opened(std::move(received)));
  stage_ = Stage::Open;
  return {};
}

Status Job::accept_opened(Received received) {
  if (const auto* failure = received.message->body_as_Failure()) {
    return daemon_error(failure->code(), failure->text());
  }
  const auto refuse = [&](const std::string& what) {
    return make_status(StatusCode::Protocol, "braidd at '{}' answered OpenJob with {}",
                       session_.socket_path(), what);
  };
  const proto::JobOpened* opened = received.message->body_as_JobOpened();
  if (opened == nullptr) return refuse(proto::EnumNameClientBody(received.message->body_type()));
  if (received.frame.fds.size() != 2) {
    return refuse(std::to_string(received.frame.fds.size()) +
                  " descriptors instead of the result memory's and the done ring's wake-up's");
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
  auto results =
      SharedMemory::adopt(std::move(received.frame.fds[0]), opened->result_bytes(), kResultBytesMax,
                          SharedMemory::Access::ReadOnly, "result memory");
  if (!results) return results.status();
  results_ = std::move(*results);
  if (opened->polling() > static_cast<uint8_t>(PollingMode::Always))
    return refuse("a way of waiting (polling " + std::to_string(opened->polling()) +
                  ") unknown here");
  session_.set_polling(static_cast<PollingMode>(opened->polling()));
  session_.set_done_wake(std::move(received.frame.fds[1]));
  session_.begin([this](const proto::DoneEntry& entry) { return on_done(entry); });
  return {};
}

Status Job::check_process() const {
  if (::getpid() == process_) return {};
  return make_status(StatusCode::InvalidArgument,
                     "job '{}' belongs to process {}, this is {}: a job does not survive fork(); "
                     "open one in the child",
                     name_, process_, ::getpid());
}

Status Job::leave(const char* reason) {
  BRAID_RETURN_IF_ERROR(check_process());
  if (stage_ != Stage::Open) return {};  // Its socket says it, when that is closed.
  Lock lock(session_.mutex());
  leave_with(lock, reason == nullptr ? std::string() : reason, now_ns() + kLeaveTimeoutNs);
  return {};
}

void Job::leave_at_exit(uint64_t deadline_ns) {
  deadline_ns = std::min(deadline_ns, now_ns() + kLeaveTimeoutNs);
  Lock lock = lock_until(session_.mutex(), deadline_ns);
  if (lock.owns_lock()) leave_with(lock, "its process has ended", deadline_ns);
}

Status Job::note_answer(Status answer) {
  if (answer.is_ok() && !is_refused_.load(std::memory_order_relaxed)) return answer;
  const std::lock_guard lock(refusal_mutex_);
  refusal_ = is_refusal(answer) ? answer.message().substr(0, kRefusalBytesMax) : std::string();
  is_refused_.store(!refusal_.empty(), std::memory_order_relaxed);
  return answer;
}

void Job::leave_with(Lock& lock, std::string reason, uint64_t deadline_ns) {
  if (!session_.failure().is_ok()) return;
  if (is_refused_.load(std::memory_order_relaxed)) {
    const std::lock_guard refusal(refusal_mutex_);
    if (reason.find(refusal_) == std::string::npos)
      reason += fmt::format("{}it was refused: {}", reason.empty() ? "" : "; ", refusal_);
  }
  flatbuffers::FlatBufferBuilder builder;
  const auto leave =
      proto::CreateLeaveJobDirect(builder, reason.empty() ? nullptr : reason.c_str());
  builder.Finish(proto::CreateClientMessage(builder, proto::ClientBody::LeaveJob, leave.Union()));
  if (session_.ask(proto::ClientBody::LeaveJob, builder).is_ok()) {
    // A daemon that does not answer, or that fails meanwhile, is no reason not to leave.
    session_.wait_until(lock, deadline_ns, [&] { return session_.has_left(); });
  }
  session_.fail(make_status(StatusCode::Cancelled, "job '{}' was closed", name_));
}

Status Job::register_tensors(const braid_tensor_options* options, size_t count, uint32_t* handles) {
  BRAID_RETURN_IF_ERROR(check_process());
  if (handles == nullptr) return Status(StatusCode::InvalidArgument, "tensors is NULL");
  const std::lock_guard registration(register_mutex_);
  // Its answer comes first. Who asked for it hears of a refusal when he asks again.
  if (asked_arena_) (void)await_arena(asked_arena_deadline_ns_);
  Lock lock(session_.mutex());
  std::vector<Tensor> tensors;
  BRAID_RETURN_IF_ERROR(tensors_.parse(options, count, tensors));
  if (!session_.failure().is_ok()) return session_.failure();

  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<proto::TensorDescription>> descriptions;
  descriptions.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    descriptions.push_back(proto::CreateTensorDescriptionDirect(
        builder, tensor.name.c_str(), static_cast<uint8_t>(tensor.dtype), tensor.count,
        tensor.backward_order, tensor.dynamic, tensor.planned,
        tensor.codec.empty() ? nullptr : tensor.codec.c_str(),
        static_cast<uint8_t>(tensor.state_slots)));
  }
  const auto body = proto::CreateRegisterTensorsDirect(builder, &descriptions);
  builder.Finish(
      proto::CreateClientMessage(builder, proto::ClientBody::RegisterTensors, body.Union()));
  BRAID_RETURN_IF_ERROR(session_.ask(proto::ClientBody::RegisterTensors, builder));

  uint32_t given = 0;
  BRAID_RETURN_IF_ERROR(
      await_registration(lock, fmt::format("{} tensors", count), registration_deadline(), given));
  const uint32_t first = tensors_.next_handle();
  if (given != first) {
    session_.fail(make_status(StatusCode::Protocol,
                              "braidd gave the tensor handles from {} on; expected was {}", given,
                              first));
    return session_.failure();
  }
  tensors_.add(std::move(tensors));
  for (size_t i = 0; i < count; ++i) handles[i] = first + static_cast<uint32_t>(i);
  return {};
}

Status Job::unregister_tensors(const uint32_t* handles, size_t count) {
  BRAID_RETURN_IF_ERROR(check_process());
  const std::lock_guard registration(register_mutex_);
  if (asked_arena_) (void)await_arena(asked_arena_deadline_ns_);
  Lock lock(session_.mutex());
  BRAID_RETURN_IF_ERROR(tensors_.check_registration(handles, count));
  BRAID_RETURN_IF_ERROR(check_given_back(handles[0], count));
  if (!session_.failure().is_ok()) return session_.failure();
  // Nobody submits them from here on, and the daemon hears of the last tickets first.
  TensorTable::Registration leaving = tensors_.take(handles[0]);
  const uint64_t deadline_ns = registration_deadline();
  Status status = session_.push_all_kept(lock, deadline_ns);
  if (status.is_ok()) {
    flatbuffers::FlatBufferBuilder builder;
    const auto body =
        proto::CreateUnregisterTensors(builder, handles[0], static_cast<uint32_t>(count));
    builder.Finish(
        proto::CreateClientMessage(builder, proto::ClientBody::UnregisterTensors, body.Union()));
    status = session_.ask(proto::ClientBody::UnregisterTensors, builder);
  }
  uint32_t number = 0;
  if (status.is_ok())
    status = await_registration(lock, fmt::format("{} tensors", count), deadline_ns, number);
  if (status.is_ok()) {
    tensors_.forget_names(leaving);
  } else {
    tensors_.put_back(std::move(leaving));
  }
  return status;
}

Status Job::check_given_back(uint32_t first, size_t count) const {
  for (const auto& [ticket, operation] : operations_) {
    if (operation.request.tensor - first >= count) continue;
    return make_status(
        StatusCode::InvalidArgument,
        "the {} still has ticket {}: wait for it and release it before its tensor is "
        "unregistered",
        describe(operation.request, tensors_), ticket);
  }
  return {};
}

Status Job::allocate(size_t bytes, void** memory) {
  BRAID_RETURN_IF_ERROR(check_process());
  if (memory == nullptr) return Status(StatusCode::InvalidArgument, "memory is NULL");
  ArenaPlace place;
  BRAID_RETURN_IF_ERROR(allocate_in_arenas(bytes, place));
  *memory = arenas_.at(place);
  return {};
}

uint64_t Job::end_of_patience() const {
  const uint32_t patience_ms = patience_ms_;
  return patience_ms == 0 ? UINT64_MAX : now_ns() + patience_ms * 1'000'000ull;
}

Status Job::allocate_in_arenas(uint64_t bytes, ArenaPlace& place) {
  std::optional<ArenaPlace> found;
  BRAID_RETURN_IF_ERROR(arenas_.allocate(bytes, found));
  if (!found) {
    const uint64_t until_ns = end_of_patience();
    const Lock registration = lock_until(register_mutex_, until_ns);
    if (!registration.owns_lock()) {
      return make_status(StatusCode::DeadlineExceeded,
                         "braidd at '{}' has not answered another registration of job '{}' yet",
                         session_.socket_path(), name_);
    }
    // Another thread may have registered one meanwhile.
    BRAID_RETURN_IF_ERROR(arenas_.allocate(bytes, found));
    while (!found) {
      if (!asked_arena_) BRAID_RETURN_IF_ERROR(ask_for_arena(bytes));
      BRAID_RETURN_IF_ERROR(await_arena(until_ns));
      BRAID_RETURN_IF_ERROR(arenas_.allocate(bytes, found));
    }
  }
  place = *found;
  return {};
}

Status Job::ask_for_arena(uint64_t bytes) {
  std::unique_ptr<Arena> arena;
  BRAID_RETURN_IF_ERROR(arenas_.make(bytes, arena));
  const Lock lock(session_.mutex());
  if (!session_.failure().is_ok()) return session_.failure();
  flatbuffers::FlatBufferBuilder builder;
  const auto body = proto::CreateRegisterMemory(builder, arena->size());
  builder.Finish(
      proto::CreateClientMessage(builder, proto::ClientBody::RegisterMemory, body.Union()));
  const int fds[] = {arena->fd()};
  BRAID_RETURN_IF_ERROR(session_.ask(proto::ClientBody::RegisterMemory, builder, fds));
  asked_arena_ = std::move(arena);
  asked_arena_deadline_ns_ = registration_deadline();
  return {};
}

// The answer about asked_arena_, or DeadlineExceeded where it has not come by `until_ns`.
Status Job::await_arena(uint64_t until_ns) {
  Lock lock(session_.mutex());
  const auto is_answered = [this] { return session_.has_registration(); };
  if (until_ns < asked_arena_deadline_ns_ && !session_.wait_until(lock, until_ns, is_answered)) {
    return make_status(StatusCode::DeadlineExceeded,
                       "braidd at '{}' has not answered the registration of an input arena yet{}",
                       session_.socket_path(), session_.silence());
  }
  uint32_t given = 0;
  std::unique_ptr<Arena> arena = std::move(asked_arena_);
  BRAID_RETURN_IF_ERROR(
      await_registration(lock, "an input arena", asked_arena_deadline_ns_, given));
  if (given != arenas_.size()) {
    session_.fail(make_status(StatusCode::Protocol,
                              "braidd gave the input arena the number {}; expected was {}", given,
                              arenas_.size()));
    return session_.failure();
  }
  arenas_.add(std::move(arena));
  return {};
}

// With the session's mutex held.
uint64_t Job::registration_deadline() {
  return now_ns() + timeouts_.usual_ms() * 1'000'000ull + kGraceNs;
}

// The answer to what was asked: its number, or why it was refused.
Status Job::await_registration(Lock& lock, const std::string& what, uint64_t deadline_ns,
                               uint32_t& number) {
  if (!session_.wait_until(lock, deadline_ns, [&] { return session_.has_registration(); })) {
    // The reply may still come, and would be taken for another registration's.
    session_.fail(make_status(
        StatusCode::DeadlineExceeded,
        "braidd at '{}' does not answer: no reply to the registration of {} within {} ms",
        session_.socket_path(), what, timeouts_.usual_ms()));
  }
  const auto reply = session_.take_registration();
  if (!reply) return session_.failure();
  if (!reply->refusal) return reply->refusal;
  number = reply->number;
  return {};
}

Status Job::free(void* memory) {
  BRAID_RETURN_IF_ERROR(check_process());
  if (memory == nullptr) return {};
  bool fits = false;
  const auto place = arenas_.place_of(memory, 0, fits);
  if (!place || !arenas_.release(*place)) {
    return make_status(StatusCode::NotFound,
                       "memory {} was not given out by braid_allocate of job '{}'", memory, name_);
  }
  return {};
}

}  // namespace braid::client
