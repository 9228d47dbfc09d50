// SPDX-License-Identifier: Apache-2.0
#include "registry.h"

#include <utility>

namespace braid::client {
namespace {

flatbuffers::Offset<proto::RegisterTensors> description_of(const std::vector<Tensor>& tensors,
                                                           flatbuffers::FlatBufferBuilder& to) {
  std::vector<flatbuffers::Offset<proto::TensorDescription>> descriptions;
  descriptions.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    descriptions.push_back(proto::CreateTensorDescriptionDirect(
        to, tensor.name.c_str(), static_cast<uint8_t>(tensor.dtype), tensor.count,
        tensor.backward_order, tensor.dynamic, tensor.planned,
        tensor.codec.empty() ? nullptr : tensor.codec.c_str(),
        static_cast<uint8_t>(tensor.state_slots)));
  }
  return proto::CreateRegisterTensorsDirect(to, &descriptions);
}

}  // namespace

Status Registry::register_tensors(const braid_tensor_options* options, size_t count,
                                  uint32_t* handles) {
  if (handles == nullptr) return Status(StatusCode::InvalidArgument, "tensors is NULL");
  const Lock registration(mutex_);
  // Its answer comes first. A refusal is told to the caller who asks for an arena again.
  if (asked_arena_) (void)await_arena(asked_arena_deadline_ns_);
  Lock lock(session_.mutex());
  std::vector<Tensor> tensors;
  BRAID_RETURN_IF_ERROR(tensors_.parse(options, count, tensors));
  flatbuffers::FlatBufferBuilder builder;
  BRAID_RETURN_IF_ERROR(session_.ask(builder, description_of(tensors, builder)));
  uint32_t given = 0;
  BRAID_RETURN_IF_ERROR(await_answer(lock, fmt::format("{} tensors", count), deadline(), given));
  const uint32_t first = tensors_.next_handle();
  if (given != first) {
    return session_.fail(make_status(StatusCode::Protocol,
                                     "braidd gave the tensor handles from {} on; expected was {}",
                                     given, first));
  }
  tensors_.add(std::move(tensors));
  for (size_t i = 0; i < count; ++i) handles[i] = first + static_cast<uint32_t>(i);
  return {};
}

Status Registry::unregister_tensors(const uint32_t* handles, size_t count,
                                    const std::function<Status()>& check_unused) {
  const Lock registration(mutex_);
  if (asked_arena_) (void)await_arena(asked_arena_deadline_ns_);
  Lock lock(session_.mutex());
  BRAID_RETURN_IF_ERROR(tensors_.check_registration(handles, count));
  BRAID_RETURN_IF_ERROR(check_unused());
  // Nobody submits them from here on, and the daemon hears of the last tickets first.
  TensorTable::Registration leaving = tensors_.take(handles[0]);
  const uint64_t deadline_ns = deadline();
  Status status = session_.push_all_kept(lock, deadline_ns);
  flatbuffers::FlatBufferBuilder builder;
  if (status.is_ok()) {
    status = session_.ask(
        builder, proto::CreateUnregisterTensors(builder, handles[0], static_cast<uint32_t>(count)));
  }
  uint32_t number = 0;
  if (status.is_ok())
    status = await_answer(lock, fmt::format("{} tensors", count), deadline_ns, number);
  if (status.is_ok()) {
    tensors_.forget_names(leaving);
  } else {
    tensors_.put_back(std::move(leaving));
  }
  return status;
}

Status Registry::allocate(uint64_t bytes, void** memory) {
  if (memory == nullptr) return Status(StatusCode::InvalidArgument, "memory is NULL");
  ArenaPlace place;
  BRAID_RETURN_IF_ERROR(allocate(bytes, place));
  *memory = arenas_.at(place);
  return {};
}

Status Registry::allocate(uint64_t bytes, ArenaPlace& place) {
  std::optional<ArenaPlace> found;
  BRAID_RETURN_IF_ERROR(arenas_.allocate(bytes, found));
  if (!found) {
    const uint64_t until_ns = session_.end_of_patience();
    const Lock registration = lock_until(mutex_, until_ns);
    if (!registration.owns_lock()) {
      return make_status(StatusCode::DeadlineExceeded,
                         "braidd at '{}' has not answered another registration of job '{}' yet",
                         session_.socket_path(), session_.job_name());
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

Status Registry::free(const void* memory) {
  if (memory == nullptr) return {};
  bool fits = false;
  const auto place = arenas_.place_of(memory, 0, fits);
  if (place && arenas_.release(*place)) return {};
  return make_status(StatusCode::NotFound,
                     "memory {} was not given out by braid_allocate of job '{}'", memory,
                     session_.job_name());
}

Status Registry::ask_for_arena(uint64_t bytes) {
  std::unique_ptr<Arena> arena;
  BRAID_RETURN_IF_ERROR(arenas_.make(bytes, arena));
  const Lock lock(session_.mutex());
  flatbuffers::FlatBufferBuilder builder;
  const int fds[] = {arena->fd()};
  BRAID_RETURN_IF_ERROR(
      session_.ask(builder, proto::CreateRegisterMemory(builder, arena->size()), fds));
  asked_arena_ = std::move(arena);
  asked_arena_deadline_ns_ = deadline();
  return {};
}

// The answer about asked_arena_, or DeadlineExceeded if it has not come by `until_ns`.
Status Registry::await_arena(uint64_t until_ns) {
  Lock lock(session_.mutex());
  const auto is_answered = [this] { return session_.has_registration(); };
  if (until_ns < asked_arena_deadline_ns_ && !session_.wait_until(lock, until_ns, is_answered)) {
    return make_status(StatusCode::DeadlineExceeded,
                       "braidd at '{}' has not answered the registration of an input arena yet{}",
                       session_.socket_path(), session_.silence());
  }
  uint32_t given = 0;
  std::unique_ptr<Arena> arena = std::move(asked_arena_);
  BRAID_RETURN_IF_ERROR(await_answer(lock, "an input arena", asked_arena_deadline_ns_, given));
  if (given != arenas_.size()) {
    return session_.fail(make_status(StatusCode::Protocol,
                                     "braidd gave the input arena the number {}; expected was {}",
                                     given, arenas_.size()));
  }
  arenas_.add(std::move(arena));
  return {};
}

// With the session's mutex held.
uint64_t Registry::deadline() const {
  return now_ns() + timeouts_.usual_ms() * 1'000'000ull + kDaemonGraceNs;
}

// The number that was given, or why there is none.
Status Registry::await_answer(Lock& lock, const std::string& what, uint64_t deadline_ns,
                              uint32_t& number) {
  if (!session_.wait_until(lock, deadline_ns, [&] { return session_.has_registration(); })) {
    // The reply may still come, and would be taken for another registration's.
    return session_.fail(make_status(
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

}  // namespace braid::client
