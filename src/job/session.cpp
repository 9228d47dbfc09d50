// SPDX-License-Identifier: Apache-2.0
#include "job/session.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "coordinator/coordinator.h"
#include "job/job.h"
#include "job/submitted_splits.h"
#include "job/submitted_update.h"

namespace braid {
namespace {

using proto::ClientBody;

// The rings' memory and both sides' wake-ups, and a job's memory for results, which has two.
constexpr uint64_t kDescriptorsOfTrainer = 7;

template <typename Table>
void send_body(ClientConnection& connection, flatbuffers::FlatBufferBuilder& builder,
               flatbuffers::Offset<Table> body, std::span<const int> fds = {}) {
  builder.Finish(proto::CreateClientMessage(builder, proto::ClientBodyTraits<Table>::enum_value,
                                            body.Union()));
  connection.send(builder, fds);
}

// Pending operations count in steps: the quotas have a lock.
constexpr uint64_t kTicketsStep = 16;

// Bytes that the trainer's input must hold; nothing if what it gives or gets is beyond
// kTensorBytesMax. Of an exchange the splits say so.
std::optional<uint64_t> checked_input_bytes(const Signature& signature, uint32_t world_size) {
  const CheckedNumber bytes = CheckedNumber(signature.count) * element_bytes(signature.dtype);
  const bool is_in_blocks = signature.collective == Collective::AllGather ||
                            signature.collective == Collective::ReduceScatter;
  const CheckedNumber all = bytes * (is_in_blocks ? world_size : 1U);
  if (!all.is_at_most(kTensorBytesMax)) return std::nullopt;
  return (signature.collective == Collective::ReduceScatter ? all : bytes).value();
}

// Of an operation that is no exchange.
bool has_input(const Submission& submission, uint32_t rank) {
  const Signature& signature = submission.signature;
  return signature.collective != Collective::Barrier &&
         (signature.collective != Collective::Broadcast || signature.root == rank) &&
         submission.update.action != UpdateAction::Fetch;
}

uint32_t weight_of(const proto::OpenJob& open) { return open.weight() == 0 ? 1 : open.weight(); }

std::span<const uint8_t> token_of(const proto::OpenJob& open) {
  if (open.token() == nullptr) return {};
  return {open.token()->data(), open.token()->size()};
}

// Ok, or what in it makes no sense or is more than this node allows.
Status check_open(const proto::OpenJob& open, const SessionLimits& limits) {
  if (open.name()->size() == 0 || open.name()->size() > Session::kJobNameBytesMax) {
    return make_status(StatusCode::InvalidArgument, "a job's name has 1 to {} bytes, not {}",
                       Session::kJobNameBytesMax, open.name()->size());
  }
  if (open.world_size() == 0 || open.world_size() > Coordinator::kWorldSizeMax ||
      open.rank() >= open.world_size()) {
    return make_status(
        StatusCode::InvalidArgument,
        "rank {} of world size {}: the world size must be 1 to {} and the rank below it",
        open.rank(), open.world_size(), Coordinator::kWorldSizeMax);
  }
  if (const size_t bytes = token_of(open).size(); bytes > kJobTokenBytesMax) {
    return make_status(StatusCode::InvalidArgument,
                       "a job's token has {} bytes at most (BRAID_JOB_TOKEN), not {}",
                       kJobTokenBytesMax, bytes);
  }
  if (const size_t bytes = open.master_address()->size(); bytes > Session::kAddressBytesMax) {
    return make_status(StatusCode::InvalidArgument,
                       "a job's master address has {} bytes at most, not {}",
                       Session::kAddressBytesMax, bytes);
  }
  if (open.master_address()->size() == 0 || open.timeout_ms() == 0) {
    return Status(StatusCode::InvalidArgument,
                  "a job needs a master address and a timeout above 0");
  }
  const uint32_t weight = weight_of(open);
  if (weight > kJobWeightMax) {
    return make_status(StatusCode::InvalidArgument,
                       "BRAID_JOB_WEIGHT is {}; a job's weight is 1 to {}", weight, kJobWeightMax);
  }
  if (weight > limits.job_weight_max) {
    return make_status(StatusCode::ResourceExhausted,
                       "BRAID_JOB_WEIGHT is {} and this node's client.job_weight_max allows {}: "
                       "ask for less or raise it",
                       weight, limits.job_weight_max);
  }
  return Status::ok();
}

}  // namespace

Result<std::unique_ptr<Session>> Session::create(Loop& loop, WorkThread& worker,
                                                 SubmissionTurns& turns,
                                                 RegistrationServices services,
                                                 ClientConnection& connection,
                                                 const proto::OpenJob& open, std::vector<Fd> fds,
                                                 const SessionLimits& limits) {
  const uid_t user = connection.credentials().uid;
  const auto charge = [&](UserResource resource) {
    return UserCharge(limits.quotas, user, resource);
  };
  std::unique_ptr<Session> session(new Session(
      loop, turns, services, connection,
      InputArenas(worker, limits.arena_bytes_max, charge(UserResource::ArenaBytes),
                  charge(UserResource::InputPages), charge(UserResource::Descriptors))));
  session->identity_.name = open.name()->str();
  session->master_address_ = open.master_address()->str();
  session->master_node_ = open.master_node();
  session->rank_ = open.rank();
  session->world_size_ = open.world_size();
  session->timeout_ms_ = open.timeout_ms();
  session->done_capacity_ = open.done_capacity();
  session->weight_ = weight_of(open);
  session->operation_timeout_ms_ = limits.operation_timeout_ms;
  session->farewell_ms_ = limits.farewell_ms;
  session->polling_ = limits.polling;
  session->codecs_ = limits.codecs;
  session->tensors_charge_ = charge(UserResource::Tensors);
  session->names_charge_ = charge(UserResource::NameBytes);
  session->descriptors_ = charge(UserResource::Descriptors);
  session->tickets_charge_ = charge(UserResource::Operations);
  BRAID_RETURN_IF_ERROR(check_open(open, limits));
  BRAID_RETURN_IF_ERROR(session->descriptors_.set(kDescriptorsOfTrainer));
  const auto token = token_of(open);
  session->has_token_ = !token.empty();
  session->identity_.owner = job_owner(session->job_name(), token, user);
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

void Session::open(uint32_t epoch, std::shared_ptr<ResultMemory> results, const Ring& ring,
                   OperationTable& operations) {
  operations_ = &operations;
  state_ = State::Member;
  flatbuffers::FlatBufferBuilder builder;
  const auto blocks = builder.CreateVector(ring.block_of_rank);
  const auto body = proto::CreateJobOpened(builder, epoch, results->size(), blocks,
                                           static_cast<uint8_t>(polling_));
  const Fd done_wake = rings_->take_done_wake();
  const int fds[] = {results->fd_for_reader(), done_wake.get()};
  results_ = std::move(results);
  send_body(connection_, builder, body, fds);
  submitter_->job_key = job_->key();
  submitter_->weight = weight_;
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

void Session::refuse_registration(const Status& reason) {
  flatbuffers::FlatBufferBuilder builder;
  const auto text = builder.CreateString(reason.message());
  send_body(connection_, builder,
            proto::CreateRegistrationRefused(builder, static_cast<uint8_t>(reason.code()), text));
}

void Session::publish(uint64_t ticket, uint64_t result_offset, uint64_t result_bytes) {
  if (state_ != State::Member) return;
  if (const Status pushed = rings_->push_done({ticket, result_offset, result_bytes, 0}); !pushed) {
    job_->fail(pushed.with_context(fmt::format("job '{}': rank {}", job_name(), rank_)));
    return;
  }
  rings_->wake_client();
}

void Session::fail(const Status& reason) {
  if (state_ == State::Left || state_ == State::Failed) return;
  state_ = State::Failed;
  job_ = nullptr;
  end_submissions();
  flatbuffers::FlatBufferBuilder builder;
  const auto text = builder.CreateString(reason.message());
  send_body(connection_, builder,
            proto::CreateFailure(builder, static_cast<uint8_t>(reason.code()), text));
  await_farewell();
}

void Session::on_process_gone() {
  if (results_ != nullptr) results_->on_reader_gone();
  results_.reset();
}

void Session::begin_leaving(std::string reason) {
  if (state_ != State::Member || is_leaving_) return;
  is_leaving_ = true;
  leave_reason_ = std::move(reason);
  rings_->serve_again();  // it may have submitted without waking anybody
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
  tickets_.clear();
  (void)tickets_charge_.set(0);
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
    const Status taken = popped ? take(entry) : popped.status();
    // A failed job may have closed this session from within take().
    if (state_ != State::Member) return i;
    if (!taken) {
      rings_->stop();
      job_->fail(taken.with_context(fmt::format("job '{}': rank {}", job_name(), rank_)));
      return i;
    }
    if (leaving_tensors_ && --leaving_tensors_->entries_before == 0) begin_unregistration();
  }
  return entries_max;
}

Status Session::take(const proto::SubmitEntry& entry) {
  if (static_cast<proto::SubmitKind>(entry.kind) == proto::SubmitKind::Operation)
    return take_operation(entry);
  const auto ticket = tickets_.find(entry.ticket);
  if (ticket == tickets_.end()) {
    return make_status(StatusCode::Protocol, "gave back ticket {}, which it does not hold",
                       entry.ticket);
  }
  const auto [key, tensor] = ticket->second;
  tensors_->let_go(tensor);
  tickets_.erase(ticket);
  (void)tickets_charge_.set_in_steps(tickets_.size(), kTicketsStep);
  job_->check(operations_->release(local_rank_, key));
  return Status::ok();
}

Status Session::take_operation(const proto::SubmitEntry& entry) {
  Tensor* tensor = tensors_->find(entry.tensor);
  if (tensor == nullptr) {
    return make_status(StatusCode::NotFound, "submitted tensor {}, which it has not registered",
                       entry.tensor);
  }
  if (tensor->last_step && entry.step <= *tensor->last_step) {
    return make_status(StatusCode::InvalidArgument,
                       "submitted '{}' step {} after step {}: steps of a tensor must grow",
                       *tensor->name, entry.step, *tensor->last_step);
  }
  tensor->last_step = entry.step;
  if (arenas_.find(entry.arena) == nullptr) {
    return make_status(StatusCode::NotFound,
                       "submitted '{}' step {} in arena {}; it has registered {}, counted from 0 "
                       "(RegisterMemory)",
                       *tensor->name, entry.step, entry.arena, arenas_.all()->size());
  }
  return finish_operation(entry, *tensor);
}

Status Session::finish_operation(const proto::SubmitEntry& entry, const Tensor& tensor) {
  Submission submission;
  submission.local_rank = local_rank_;
  submission.ticket = entry.ticket;
  submission.tensor = tensor.hash;
  submission.step = entry.step;
  submission.name = tensor.name;
  submission.timeout_ms = entry.timeout_ms != 0 ? entry.timeout_ms : operation_timeout_ms_;

  BRAID_RETURN_IF_ERROR(sign(entry, tensor, submission));
  BRAID_RETURN_IF_ERROR(find_update(entry, tensor, submission));
  BRAID_RETURN_IF_ERROR(find_input(entry, tensor, submission));
  if (tickets_.size() >= done_capacity_) {
    return make_status(StatusCode::Protocol, "holds more than the {} tickets it said",
                       done_capacity_);
  }
  BRAID_RETURN_IF_ERROR(tickets_charge_.set_in_steps(tickets_.size() + 1, kTicketsStep));
  const OperationKey key{job_->key(), submission.tensor, submission.step};
  if (entry.ticket == 0 || !tickets_.try_emplace(entry.ticket, Ticket{key, entry.tensor}).second) {
    return make_status(StatusCode::Protocol, "used ticket {} twice", entry.ticket);
  }
  tensors_->hold(entry.tensor);
  last_name_ = tensor.name;
  last_step_ = entry.step;
  job_->on_submit(std::move(submission), tensor.plan_set);
  return Status::ok();
}

Status Session::sign(const proto::SubmitEntry& entry, const Tensor& tensor,
                     Submission& submission) const {
  Signature& signature = submission.signature;
  signature.collective = static_cast<Collective>(entry.collective);
  if (signature.collective != Collective::Barrier) {
    signature.dtype = tensor.is_dynamic ? static_cast<DataType>(entry.dtype) : tensor.dtype;
    signature.count = tensor.is_dynamic ? entry.count : tensor.count;
  }
  if (signature.collective == Collective::AllReduce ||
      signature.collective == Collective::ReduceScatter) {
    signature.reduction = static_cast<Reduction>(entry.reduction);
  }
  if (has_root(signature.collective)) signature.root = entry.root;
  if (signature.root >= world_size_) {
    return make_status(StatusCode::InvalidArgument, "'{}' step {}: root {} is no rank below {}",
                       *tensor.name, entry.step, signature.root, world_size_);
  }
  const auto bytes = checked_input_bytes(signature, world_size_);
  if (!bytes) {
    return make_status(StatusCode::InvalidArgument,
                       "'{}' step {}: {} is too large: a rank gives and gets {} bytes at most",
                       *tensor.name, entry.step, to_string(signature), kTensorBytesMax);
  }
  submission.input_bytes = *bytes;
  if (signature.collective == Collective::AllToAll) signature.count = 0;  // the splits count
  return Status::ok();
}

Status Session::find_update(const proto::SubmitEntry& entry, const Tensor& tensor,
                            Submission& submission) {
  Signature& signature = submission.signature;
  if (tensor.state_slots == 0) {
    if (signature.collective == Collective::AllToAll || entry.table == 0) return Status::ok();
    return make_status(StatusCode::InvalidArgument,
                       "'{}' step {} asks for an update; the tensor was registered without state "
                       "slots",
                       *tensor.name, entry.step);
  }
  const SharedMemory& arena = *arenas_.find(entry.arena);
  BRAID_RETURN_IF_ERROR(
      arenas_.count_missing_pages(entry.arena, entry.table, sizeof(proto::UpdateEntry)));
  auto update = submitted_update(tensor, signature, arena, entry.table);
  if (!update) {
    return update.status().with_context(fmt::format("'{}' step {}", *tensor.name, entry.step));
  }
  submission.update = *update;
  signature.owner_step = OwnerStepKind::Optimizer;
  return Status::ok();
}

Status Session::find_input(const proto::SubmitEntry& entry, const Tensor& tensor,
                           Submission& submission) {
  const Signature& signature = submission.signature;
  const SharedMemory& arena = *arenas_.find(entry.arena);
  uint64_t& bytes = submission.input_bytes;
  if (is_exchange(signature.collective)) {
    if (signature.collective == Collective::AllToAll) {
      BRAID_RETURN_IF_ERROR(arenas_.count_missing_pages(
          entry.arena, entry.table, 2 * sizeof(uint64_t) * uint64_t{world_size_}));
    }
    auto splits = submitted_splits(signature, rank_, world_size_, arena, entry.table,
                                   rings_charge_.another());
    if (!splits) {
      return splits.status().with_context(fmt::format("'{}' step {}", *tensor.name, entry.step));
    }
    bytes = input_bytes_of(**splits, signature.dtype);
    submission.splits = std::move(*splits);
  } else if (!has_input(submission, rank_)) {
    bytes = 0;
  }
  submission.input = arena.data();
  if (bytes == 0) return Status::ok();
  if (!range_fits(entry.offset, bytes, arena.size()) ||
      entry.offset % element_bytes(signature.dtype) != 0) {
    return make_status(StatusCode::InvalidArgument,
                       "'{}' step {}: an input of {} bytes at {} is not inside the arena of {} "
                       "bytes, or not aligned",
                       *tensor.name, entry.step, bytes, entry.offset, arena.size());
  }
  submission.input += entry.offset;
  Status counted = arenas_.count_missing_pages(entry.arena, entry.offset, bytes);
  if (counted) return counted;
  return counted.with_context(fmt::format("'{}' step {}", *tensor.name, entry.step));
}

std::string Session::last_operation() const {
  return last_name_ == nullptr ? std::string()
                               : fmt::format("'{}' step {}", *last_name_, last_step_);
}

}  // namespace braid
