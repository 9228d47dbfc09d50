// SPDX-License-Identifier: Apache-2.0
#include "job/session.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/printable.h"
#include "job/client_body.h"
#include "job/job.h"
#include "job/told_work.h"

namespace braid {
namespace {

constexpr size_t kLeaveReasonBytesMax = 400;

// The rings' memory and both sides' wake-ups, and a job's memory for results, which has two.
constexpr uint64_t kDescriptorsOfTrainer = 7;

}  // namespace

Result<std::unique_ptr<Session>> Session::create(Loop& loop, WorkThread& worker,
                                                 SubmissionTurns& turns,
                                                 RegistrationServices services,
                                                 ClientConnection& connection,
                                                 const proto::OpenJob& open, std::vector<Fd> fds,
                                                 const SessionLimits& limits) {
  const uid_t user = connection.credentials().uid;
  auto request = parse_open_job(open, user);
  if (!request) return request.status();
  const auto charge = [&](UserResource resource) {
    return UserCharge(limits.quotas, user, resource);
  };
  std::unique_ptr<Session> session(new Session(
      loop, turns, services, connection,
      InputArenas(worker, limits.arena_bytes_max, charge(UserResource::ArenaBytes),
                  charge(UserResource::InputPages), charge(UserResource::Descriptors))));
  session->request_ = std::move(*request);
  session->farewell_ms_ = limits.farewell_ms;
  session->polling_ = limits.polling;
  session->codecs_ = limits.codecs;
  session->tensors_charge_ = charge(UserResource::Tensors);
  session->names_charge_ = charge(UserResource::NameBytes);
  session->descriptors_ = charge(UserResource::Descriptors);
  session->submissions_.limit(session->request_.done_capacity, charge(UserResource::Operations),
                              limits.operation_timeout_ms);
  BRAID_RETURN_IF_ERROR(session->descriptors_.set(kDescriptorsOfTrainer));
  if (const auto arena = session->arenas_.add(std::move(fds[0]), open.arena_bytes()); !arena)
    return arena.status();
  auto rings = DaemonRings::adopt(std::move(fds[1]), std::move(fds[2]), open.submit_capacity(),
                                  open.done_capacity());
  if (!rings) return rings.status();
  session->rings_ = std::move(rings).value();
  session->rings_charge_ = charge(UserResource::BufferBytes);
  if (const Status room = session->rings_charge_.set(session->rings_->memory_bytes()); !room)
    return room.with_context("a trainer's rings");
  return session;
}

void Session::open(uint32_t epoch, std::shared_ptr<ResultMemory> results, const Ring& ring) {
  submissions_.begin(*job_, local_rank_);
  state_ = State::Member;
  flatbuffers::FlatBufferBuilder builder;
  const auto blocks = builder.CreateVector(ring.block_of_rank);
  const auto body = proto::CreateJobOpened(builder, epoch, results->size(), blocks,
                                           static_cast<uint8_t>(polling_), true, ring.nodes, true);
  const Fd done_wake = rings_->take_done_wake();
  const int fds[] = {results->fd_for_reader(), done_wake.get()};
  results_ = std::move(results);
  send_body(connection_, builder, body, fds);
  submitter_->job_key = job_->key();
  submitter_->weight = request_.weight;
  submitter_->take = [this](size_t entries_max) { return drain(entries_max); };
  if (const Status started = rings_->start(loop_, [this] { turns_.ask(submitter_); }); !started)
    job_->fail(started);
}

Session::~Session() {
  submitter_->take = nullptr;
  if (rings_ != nullptr && rings_->may_linger()) rings_charge_.let_linger();
  registration_.reset();
  unregistration_.reset();
  services_.work.dispose(std::move(tensors_));
}

bool Session::on_message(const proto::ClientMessage& message, std::vector<Fd>& fds) {
  if (is_joining()) return false;
  switch (message.body_type()) {
    case proto::ClientBody::RegisterTensors:
      if (is_leaving_) return false;
      register_tensors(*message.body_as_RegisterTensors(), connection_.message_bytes());
      return true;
    case proto::ClientBody::UnregisterTensors:
      if (is_leaving_) return false;
      unregister_tensors(*message.body_as_UnregisterTensors());
      return true;
    case proto::ClientBody::RegisterMemory:
      if (is_leaving_) return false;
      register_memory(message.body_as_RegisterMemory()->bytes(), std::move(fds.front()));
      return true;
    case proto::ClientBody::WorkTold:
      take_work(*message.body_as_WorkTold());
      return true;
    case proto::ClientBody::LeaveJob:
      if (job_ == nullptr)
        leave();
      else
        begin_leaving(*message.body_as_LeaveJob());
      return true;
    default:
      return false;
  }
}

void Session::register_tensors(const proto::RegisterTensors& message, Registration::Bytes bytes) {
  if (state_ != State::Member) return;
  const bool is_small = bytes->size() <= Registration::kSmallBytesMax;
  auto registration =
      std::make_unique<Registration>(as_registering(), services_, std::move(bytes), message);
  if (is_small && job_->registrations().is_empty())
    return answer_registration(registration->make_now());
  connection_.hold();
  registration_ = std::move(registration);
  registration_->start([this](const Result<uint32_t>& first) {
    registration_.reset();
    answer_registration(first);
    connection_.resume();
  });
}

Registration::Trainer Session::as_registering() {
  return {*this, *job_, *tensors_, tensors_charge_, names_charge_, codecs_};
}

void Session::unregister_tensors(const proto::UnregisterTensors& message) {
  if (state_ != State::Member) return;
  connection_.hold();
  leaving_tensors_ = {message.first_handle(), message.count(), rings_->waiting()};
  if (leaving_tensors_->entries_before == 0) return begin_unregistration();
  rings_->serve_again();  // it may have given back tickets without waking anybody
}

void Session::begin_unregistration() {
  const Leaving leaving = *std::exchange(leaving_tensors_, std::nullopt);
  Result<TensorTable::Registered> removed = tensors_->take(leaving.first, leaving.count);
  if (!removed) {
    refuse_registration(removed.status());
    return connection_.resume();
  }
  unregistration_ =
      std::make_unique<Unregistration>(as_registering(), services_, std::move(*removed));
  unregistration_->start([this] {
    unregistration_.reset();
    flatbuffers::FlatBufferBuilder builder;
    send_body(connection_, builder, proto::CreateTensorsUnregistered(builder));
    connection_.resume();
  });
}

void Session::answer_registration(const Result<uint32_t>& first) {
  if (!first) return refuse_registration(first.status());
  flatbuffers::FlatBufferBuilder builder;
  send_body(connection_, builder, proto::CreateTensorsRegistered(builder, *first));
}

void Session::register_memory(uint64_t bytes, Fd memory) {
  if (state_ != State::Member) return;
  const auto arena = arenas_.add(std::move(memory), bytes);
  if (!arena) return refuse_registration(arena.status());
  // Before the trainer can name it.
  job_->on_memory_registered(arenas_.all()->at(*arena));
  flatbuffers::FlatBufferBuilder builder;
  send_body(connection_, builder, proto::CreateMemoryRegistered(builder, *arena));
}

void Session::take_work(const proto::WorkTold& told) {
  if (state_ != State::Member) return;
  auto work = read_told_work(told, rank(), world_size(), SystemClock().now_ns());
  const Status taken =
      work ? job_->work().take(std::move(*work), rings_charge_.another()) : work.status();
  if (!taken) job_->fail(taken.with_context(fmt::format("job '{}': rank {}", job_name(), rank())));
}

void Session::refuse_registration(const Status& reason) {
  flatbuffers::FlatBufferBuilder builder;
  const auto text = builder.CreateString(reason.message());
  send_body(connection_, builder,
            proto::CreateRegistrationRefused(builder, static_cast<uint8_t>(reason.code()), text));
}

void Session::publish(uint64_t ticket, uint64_t result_offset, uint64_t result_bytes) {
  publish_message(ticket, result_offset, result_bytes, 0);
}

void Session::publish_message(uint64_t ticket, uint64_t result_offset, uint64_t result_bytes,
                              uint32_t source) {
  if (state_ != State::Member) return;
  const proto::DoneEntry entry{ticket, result_offset, result_bytes, source, 0};
  if (const Status pushed = rings_->push_done(entry); !pushed) {
    job_->fail(pushed.with_context(fmt::format("job '{}': rank {}", job_name(), rank())));
    return;
  }
  rings_->wake_client();
}

void Session::fail(const Status& reason) {
  if (state_ == State::Left || state_ == State::Failed) return;
  state_ = State::Failed;
  job_ = nullptr;
  end_submissions();
  send_failure(connection_, reason);
  await_farewell();
}

void Session::on_process_gone() {
  if (results_ != nullptr) results_->on_reader_gone();
  results_.reset();
}

void Session::begin_leaving(const proto::LeaveJob& message) {
  if (state_ != State::Member || is_leaving_) return;
  is_leaving_ = true;
  // The trainer's own words, for messages and logs.
  if (message.reason() != nullptr)
    leave_reason_ = printable(message.reason()->string_view(), kLeaveReasonBytesMax);
  if (!message.fails_job()) return rings_->serve_again();  // some may have come without a wake-up
  rings_->stop();
  job_->fail(make_status(StatusCode::JobFailed, "job '{}': rank {} cannot go on{}", job_name(),
                         rank(), leave_reason_.empty() ? "" : ": " + leave_reason_));
}

void Session::leave() {
  if (state_ != State::Failed) {
    end_submissions();
    state_ = State::Left;
    job_ = nullptr;  // it may end before this does
    on_process_gone();
  }
  flatbuffers::FlatBufferBuilder builder;
  send_body(connection_, builder, proto::CreateJobLeft(builder));
  await_farewell();
}

void Session::await_farewell() {
  connection_.expect_end();
  if (!farewell_.is_active())
    farewell_.start_once(farewell_ms_, [this] { connection_.close_after_send(); });
}

void Session::end_submissions() {
  submitter_->take = nullptr;
  if (registration_ != nullptr || unregistration_ != nullptr || leaving_tensors_) {
    registration_.reset();
    unregistration_.reset();
    leaving_tensors_.reset();
    connection_.resume();
  }
  rings_->stop();
  submissions_.end();
}

// Returns how many entries it took: fewer than `entries_max` if there are no more.
size_t Session::drain(size_t entries_max) {
  for (size_t i = 0; i < entries_max; ++i) {
    proto::SubmitEntry entry{};
    const Result<bool> popped = rings_->pop(entry);
    if (popped && !*popped) {
      if (leaving_tensors_) begin_unregistration();
      if (is_leaving_) job_->on_session_left(*this);
      return i;
    }
    const Status taken = popped ? submissions_.take(entry) : popped.status();
    // A failed job may have closed this session from within take().
    if (state_ != State::Member) return i;
    if (!taken) {
      rings_->stop();
      job_->fail(taken.with_context(fmt::format("job '{}': rank {}", job_name(), rank())));
      return i;
    }
    if (leaving_tensors_ && --leaving_tensors_->entries_before == 0) begin_unregistration();
  }
  return entries_max;
}

}  // namespace braid
