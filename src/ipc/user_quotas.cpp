// SPDX-License-Identifier: Apache-2.0
#include "ipc/user_quotas.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/checked.h"

namespace braid {
namespace {

struct ResourceText {
  const char* what;
  const char* key;
  const char* advice;
};

// By UserResource.
constexpr std::array<ResourceText, kUserResources> kTexts = {{
    {"connections", "client.user_connections_max", "close some"},
    {"jobs", "client.user_jobs_max", "end some"},
    {"bytes of input arenas", "client.user_arena_bytes_max",
     "ask for less (braid_job_options.arena_bytes)"},
    {"bytes of results in memory", "client.user_result_bytes_max", "release results sooner"},
    {"bytes of inputs that were never written", "client.user_result_bytes_max",
     "write inputs before they are submitted"},
    {"registered tensors", "client.user_tensors_max", "register fewer"},
    {"bytes of unread messages", "client.user_reply_bytes_max", "read them"},
    {"queries without an answer", "client.user_queries_max", "ask again later"},
    {"bytes of tensors' names", "client.user_name_bytes_max", "register fewer, or shorter ones"},
    {"file descriptors of braidd", "client.user_descriptors_max",
     "close connections, or register fewer and larger input arenas"},
    {"pending operations", "client.user_operations_max", "wait for some and release their results"},
    {"bytes of buffers (rings, unfinished messages, what came early from other nodes)",
     "client.user_result_bytes_max", "have fewer trainers and jobs at a time"},
}};

}  // namespace

Status UserQuotas::take(uid_t user, UserResource resource, uint64_t amount) {
  const auto index = static_cast<size_t>(resource);
  const ResourceText& text = kTexts[index];
  const std::lock_guard lock(mutex_);
  const auto position = uses_.find(user);
  const uint64_t used = position == uses_.end() ? 0 : position->second[index];
  const uint64_t max = exempt_.contains(user) ? UINT64_MAX : limits_.of_user[index];
  if (used > max || amount > max - used) {
    return make_status(StatusCode::ResourceExhausted,
                       "user {} has {} {} on this node; {} more would be beyond the {} that {} "
                       "allows: {}, or raise it",
                       user, used, text.what, amount, max, text.key, text.advice);
  }
  BRAID_RETURN_IF_ERROR(check_descriptors(resource, user, used, amount));
  if (memory_sum(resource) != nullptr) BRAID_RETURN_IF_ERROR(take_memory(resource, amount));
  if (resource == UserResource::Descriptors) descriptors_ += amount;
  if (amount > 0) uses_[user][index] += amount;
  return Status::ok();
}

// What is left of all users'.
Status UserQuotas::check_descriptors(UserResource resource, uid_t user, uint64_t used,
                                     uint64_t amount) const {
  if (resource != UserResource::Descriptors) return Status::ok();
  const ResourceText& text = kTexts[static_cast<size_t>(resource)];
  const uint64_t free = limits_.descriptors_of_all - descriptors_;
  if (amount > free || (!exempt_.contains(user) && used > free - amount)) {
    return make_status(StatusCode::ResourceExhausted,
                       "user {} has {} {} on this node, and all users {} of the {} that are for "
                       "them; {} more would leave others fewer than the user has: {}, or let "
                       "braidd have more (LimitNOFILE in its unit, ulimit -n)",
                       user, used, text.what, descriptors_, limits_.descriptors_of_all, amount,
                       text.advice);
  }
  return Status::ok();
}

uint64_t* UserQuotas::memory_sum(UserResource resource) {
  if (resource == UserResource::ResultBytes) return &result_bytes_;
  if (resource == UserResource::InputPages) return &page_bytes_;
  return resource == UserResource::BufferBytes ? &buffer_bytes_ : nullptr;
}

Status UserQuotas::take_memory(UserResource resource, uint64_t amount) {
  if (lingering_bytes_ != 0) {
    lingering_bytes_ =
        std::min(lingering_bytes_, limits_.shared_bytes ? limits_.shared_bytes() : 0);
  }
  const uint64_t used = result_bytes_ + page_bytes_ + buffer_bytes_ + lingering_bytes_;
  if (used > limits_.memory_of_all || amount > limits_.memory_of_all - used) {
    return make_status(StatusCode::ResourceExhausted,
                       "all jobs have {} bytes of results in memory on this node, {} of inputs "
                       "that were never written and {} of buffers; {} more would be beyond the {} "
                       "that collective.result_memory_max allows: {}, or raise it",
                       result_bytes_, page_bytes_ + lingering_bytes_, buffer_bytes_, amount,
                       limits_.memory_of_all, kTexts[static_cast<size_t>(resource)].advice);
  }
  *memory_sum(resource) += amount;
  return Status::ok();
}

void UserQuotas::give_back(uid_t user, UserResource resource, uint64_t amount) {
  if (amount == 0) return;
  const auto index = static_cast<size_t>(resource);
  const std::lock_guard lock(mutex_);
  const auto position = uses_.find(user);
  BRAID_ASSERT(position != uses_.end() && position->second[index] >= amount,
               "no more is given back than was taken");
  position->second[index] -= amount;
  if (uint64_t* const sum = memory_sum(resource); sum != nullptr) *sum -= amount;
  if (resource == UserResource::Descriptors) descriptors_ -= amount;
  if (resource == UserResource::InputPages) lingering_bytes_ += amount;
  const Use& use = position->second;
  if (std::all_of(use.begin(), use.end(), [](uint64_t one) { return one == 0; }))
    uses_.erase(position);
}

uint64_t UserQuotas::used(uid_t user, UserResource resource) const {
  const std::lock_guard lock(mutex_);
  const auto position = uses_.find(user);
  return position == uses_.end() ? 0 : position->second[static_cast<size_t>(resource)];
}

uint64_t UserQuotas::result_bytes() const {
  const std::lock_guard lock(mutex_);
  return result_bytes_;
}

Status UserCharge::set_in_steps(uint64_t amount, uint64_t step) {
  const uint64_t needed = round_up(amount, step);
  if (needed <= amount_ && amount_ - needed < 2 * step) return Status::ok();
  return set(needed);
}

Status UserCharge::set(uint64_t amount) {
  if (quotas_ != nullptr) {
    if (amount > amount_) {
      BRAID_RETURN_IF_ERROR(quotas_->take(user_, resource_, amount - amount_));
    } else {
      quotas_->give_back(user_, resource_, amount_ - amount);
    }
  }
  amount_ = amount;
  return Status::ok();
}

}  // namespace braid
