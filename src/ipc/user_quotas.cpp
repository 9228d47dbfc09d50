// SPDX-License-Identifier: Apache-2.0
#include "ipc/user_quotas.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/checked.h"

namespace braid {
namespace {

struct ResourceText {
  const char* what;
  const char* key;  // of the configuration; nullptr: the limit is a constant
  const char* advice;
};

constexpr const char* kMemoryKey = "client.user_result_bytes_max";

// By UserResource.
constexpr std::array<ResourceText, kUserResources> kTexts = {{
    {"connections", nullptr, "close some"},
    {"jobs", "client.user_jobs_max", "end some"},
    {"bytes of input arenas", "client.user_arena_bytes_max",
     "ask for less (braid_job_options.arena_bytes)"},
    {"results", kMemoryKey, "release results sooner"},
    {"inputs that were never written", kMemoryKey, "write inputs before they are submitted"},
    {"registered tensors", nullptr, "register fewer"},
    {"bytes of unread messages", nullptr, "read them"},
    {"queries without an answer", nullptr, "ask again later"},
    {"bytes of tensors' names", nullptr, "register fewer, or shorter ones"},
    {"file descriptors of braidd", nullptr,
     "close connections, or register fewer and larger input arenas"},
    {"pending operations", nullptr, "wait for some and release their results"},
    {"buffers", kMemoryKey, "have fewer trainers and jobs at a time"},
    {"memory that processes keep", kMemoryKey, "end processes whose jobs are over"},
}};

size_t index_of(UserResource resource) { return static_cast<size_t>(resource); }
const ResourceText& text_of(UserResource resource) { return kTexts[index_of(resource)]; }

bool is_memory(UserResource resource) {
  return std::ranges::find(kMemoryResources, resource) != kMemoryResources.end();
}

template <typename Use>
uint64_t memory_of(const Use& use) {
  uint64_t bytes = 0;
  for (const UserResource resource : kMemoryResources) bytes += use[index_of(resource)];
  return bytes;
}

bool is_beyond(uint64_t used, uint64_t amount, uint64_t max) {
  return used > max || amount > max - used;
}

template <typename Use>
Status refuse_memory(const std::string& who, const Use& use, UserResource resource, uint64_t amount,
                     uint64_t max, const char* key) {
  return make_status(
      StatusCode::ResourceExhausted,
      "{} {} bytes of braidd's memory on this node ({} of results, {} of inputs that were never "
      "written, {} of buffers (rings, unfinished messages, what came early from other nodes), {} "
      "that processes keep of sessions that are over); {} more of {} would be beyond the {} that "
      "{} allows: {}, or raise it",
      who, memory_of(use), use[index_of(UserResource::ResultBytes)],
      use[index_of(UserResource::InputPages)], use[index_of(UserResource::BufferBytes)],
      use[index_of(UserResource::LingeringBytes)], amount, text_of(resource).what, max, key,
      text_of(resource).advice);
}

}  // namespace

void UserQuotas::set_limits(const UserLimits& limits) {
  const std::lock_guard lock(mutex_);
  limits_ = limits;
}

uint64_t UserQuotas::memory_of_all() const {
  const std::lock_guard lock(mutex_);
  return limits_.memory_of_all;
}

Status UserQuotas::take(uid_t user, UserResource resource, uint64_t amount) {
  const std::lock_guard lock(mutex_);
  const auto position = uses_.find(user);
  Use use = position == uses_.end() ? Use{} : position->second;
  BRAID_RETURN_IF_ERROR(is_memory(resource) ? check_memory(use, resource, user, amount)
                                            : check(use, resource, user, amount));
  use[index_of(resource)] += amount;
  of_all_[index_of(resource)] += amount;
  if (position != uses_.end()) {
    position->second = use;
  } else if (amount > 0) {
    uses_.emplace(user, use);
  }
  return Status::ok();
}

Status UserQuotas::check(const Use& use, UserResource resource, uid_t user, uint64_t amount) const {
  const ResourceText& text = text_of(resource);
  const uint64_t used = use[index_of(resource)];
  const uint64_t max = exempt_.contains(user) ? UINT64_MAX : limits_.of_user[index_of(resource)];
  if (is_beyond(used, amount, max)) {
    return make_status(
        StatusCode::ResourceExhausted,
        "user {} has {} {} on this node; {} more would be beyond the {} that {}: {}{}", user, used,
        text.what, amount, max,
        text.key == nullptr ? "a user may have" : fmt::format("{} allows", text.key), text.advice,
        text.key == nullptr ? "" : ", or raise it");
  }
  return resource == UserResource::Descriptors ? check_descriptors(user, used, amount)
                                               : Status::ok();
}

// What is left of all users'.
Status UserQuotas::check_descriptors(uid_t user, uint64_t used, uint64_t amount) const {
  const ResourceText& text = text_of(UserResource::Descriptors);
  const uint64_t of_all = of_all_[index_of(UserResource::Descriptors)];
  const uint64_t free = limits_.descriptors_of_all - std::min(of_all, limits_.descriptors_of_all);
  if (amount > free || (!exempt_.contains(user) && used > free - amount)) {
    return make_status(StatusCode::ResourceExhausted,
                       "user {} has {} {} on this node, and all users {} of the {} that are for "
                       "them; {} more would leave others fewer than the user has: {}, or let "
                       "braidd have more (LimitNOFILE in its unit, ulimit -n)",
                       user, used, text.what, of_all, limits_.descriptors_of_all, amount,
                       text.advice);
  }
  return Status::ok();
}

// Only who would be refused has the kernel asked what there is.
Status UserQuotas::check_memory(Use& use, UserResource resource, uid_t user, uint64_t amount) {
  const uint64_t max = exempt_.contains(user) ? UINT64_MAX : limits_.memory_of_user;
  const auto has_room = [&] {
    return !is_beyond(memory_of(use), amount, max) &&
           !is_beyond(memory_of(of_all_), amount, limits_.memory_of_all);
  };
  if (!has_room() && of_all_[index_of(UserResource::LingeringBytes)] != 0)
    let_linger_at_most(use, limits_.shared_bytes ? limits_.shared_bytes() : 0);
  if (is_beyond(memory_of(use), amount, max))
    return refuse_memory(fmt::format("user {} has", user), use, resource, amount, max,
                         text_of(resource).key);
  if (!has_room()) {
    return refuse_memory("all jobs have", of_all_, resource, amount, limits_.memory_of_all,
                         "collective.result_memory_max");
  }
  return Status::ok();
}

// `use`: a copy of what one user has.
void UserQuotas::let_linger_at_most(Use& use, uint64_t bytes) {
  const size_t index = index_of(UserResource::LingeringBytes);
  of_all_[index] = std::min(of_all_[index], bytes);
  use[index] = std::min(use[index], bytes);
  for (auto& [user, theirs] : uses_) theirs[index] = std::min(theirs[index], bytes);
}

void UserQuotas::give_back(uid_t user, UserResource resource, uint64_t amount) {
  remove(user, resource, amount, resource == UserResource::InputPages);
}

void UserQuotas::let_linger(uid_t user, UserResource resource, uint64_t amount) {
  remove(user, resource, amount, true);
}

void UserQuotas::remove(uid_t user, UserResource resource, uint64_t amount, bool lingers) {
  if (amount == 0) return;
  const std::lock_guard lock(mutex_);
  const auto position = uses_.find(user);
  BRAID_ASSERT(position != uses_.end() && position->second[index_of(resource)] >= amount,
               "no more is given back than was taken");
  Use& use = position->second;
  use[index_of(resource)] -= amount;
  of_all_[index_of(resource)] -= amount;
  if (lingers) {
    use[index_of(UserResource::LingeringBytes)] += amount;
    of_all_[index_of(UserResource::LingeringBytes)] += amount;
  }
  if (std::all_of(use.begin(), use.end(), [](uint64_t one) { return one == 0; }))
    uses_.erase(position);
}

uint64_t UserQuotas::used(uid_t user, UserResource resource) const {
  const std::lock_guard lock(mutex_);
  const auto position = uses_.find(user);
  return position == uses_.end() ? 0 : position->second[index_of(resource)];
}

uint64_t UserQuotas::result_bytes() const {
  const std::lock_guard lock(mutex_);
  return of_all_[index_of(UserResource::ResultBytes)];
}

Status UserCharge::set_in_steps(uint64_t amount, uint64_t step) {
  const uint64_t needed = round_up(amount, step);
  if (needed <= amount_ && amount_ - needed < 2 * step) return Status::ok();
  return set(needed) ? Status::ok() : set(amount);
}

void UserCharge::let_linger() {
  if (quotas_ != nullptr) quotas_->let_linger(user_, resource_, amount_);
  amount_ = 0;
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
