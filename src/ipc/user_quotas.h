// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include <sys/types.h>

#include "base/status.h"

namespace braid {

// What a user has of the daemon.
enum class UserResource : uint8_t {
  Connections,
  Jobs,         // forming or running on this node
  ArenaBytes,   // of address space
  ResultBytes,  // of memory
  InputPages,   // bytes of memory, which the user's inputs did not have before they were read
  Tensors,      // registered
  ReplyBytes,   // that wait for the user's processes to read them
  Queries,      // of tools, that wait for an answer
  NameBytes,    // of registered tensors
  Descriptors,  // that this daemon has open for the user's processes
  Operations,   // of each trainer, submitted and not given back
  BufferBytes,  // of memory: rings, unfinished messages, what other nodes sent too early
  // Of memory: what the user's processes keep of sessions that are over.
  LingeringBytes,
};
inline constexpr size_t kUserResources = 13;

// These are memory of the daemon: what counts is how much of all of them there is.
inline constexpr std::array kMemoryResources = {UserResource::ResultBytes, UserResource::InputPages,
                                                UserResource::BufferBytes,
                                                UserResource::LingeringBytes};

struct UserLimits {
  std::array<uint64_t, kUserResources> of_user;  // by UserResource; no memory
  uint64_t memory_of_user = UINT64_MAX;          // of kMemoryResources together
  uint64_t memory_of_all = UINT64_MAX;           // as well, of all users
  // Bytes of shared memory that count as this process's, used by any process; empty: not known.
  std::function<uint64_t()> shared_bytes;
  // All users together. Each may have as many as are left then, so however many users there are,
  // nobody takes what the next one needs.
  uint64_t descriptors_of_all = UINT64_MAX;

  UserLimits() { of_user.fill(UINT64_MAX); }
  uint64_t& operator[](UserResource resource) { return of_user[static_cast<size_t>(resource)]; }
};

// Counts what each user has, and sees to it that none takes what the others need. Any thread.
class UserQuotas {
 public:
  // `exempt`: users whom no limit of one user holds back; those of all hold for them, too.
  UserQuotas(const UserLimits& limits, std::set<uid_t> exempt)
      : limits_(limits), exempt_(std::move(exempt)) {}

  // Other limits from now on. Nobody loses what he has: who has more gets nothing until it is less.
  void set_limits(const UserLimits& limits);
  uint64_t memory_of_all() const;  // the limit

  // ResourceExhausted names the use, the limit and its key; then nothing was taken.
  Status take(uid_t user, UserResource resource, uint64_t amount);
  // InputPages linger then: they stay while somebody keeps the arena's descriptor.
  void give_back(uid_t user, UserResource resource, uint64_t amount);
  // Memory that a process of the user's may keep, nobody knows how long: it counts until the kernel
  // has no more shared memory than that.
  void let_linger(uid_t user, UserResource resource, uint64_t amount);
  uint64_t used(uid_t user, UserResource resource) const;
  uint64_t result_bytes() const;  // of all users

 private:
  using Use = std::array<uint64_t, kUserResources>;

  void remove(uid_t user, UserResource resource, uint64_t amount, bool lingers);
  Status check(const Use& use, UserResource resource, uid_t user, uint64_t amount) const;
  Status check_descriptors(uid_t user, uint64_t used, uint64_t amount) const;
  Status check_memory(Use& use, UserResource resource, uid_t user, uint64_t amount);
  void let_linger_at_most(Use& use, uint64_t bytes);

  UserLimits limits_;
  const std::set<uid_t> exempt_;
  mutable std::mutex mutex_;
  std::map<uid_t, Use> uses_;  // of those who have something
  Use of_all_{};
};

// Something that one user has, as long as this exists. Without quotas it counts nothing.
class UserCharge {
 public:
  UserCharge() = default;
  UserCharge(std::shared_ptr<UserQuotas> quotas, uid_t user, UserResource resource)
      : quotas_(std::move(quotas)), user_(user), resource_(resource) {}
  UserCharge(UserCharge&& other) noexcept { swap(other); }
  UserCharge& operator=(UserCharge&& other) noexcept {
    UserCharge(std::move(other)).swap(*this);
    return *this;
  }
  ~UserCharge() { (void)set(0); }

  // A charge of the same user and resource, with nothing in it.
  UserCharge another() const { return {quotas_, user_, resource_}; }
  // The amount from now on. Less is always possible; where there is no room for more, it stays.
  Status set(uint64_t amount);
  // As set(), for an amount that changes often: in steps, so that it is seldom told. What counts is
  // at least the amount, and less than three steps more; no more than it where there is no room for
  // a step.
  Status set_in_steps(uint64_t amount, uint64_t step);
  // Nothing from now on, and the amount lingers: see UserQuotas::let_linger().
  void let_linger();
  uint64_t amount() const { return amount_; }

 private:
  void swap(UserCharge& other) noexcept {
    std::swap(quotas_, other.quotas_);
    std::swap(user_, other.user_);
    std::swap(resource_, other.resource_);
    std::swap(amount_, other.amount_);
  }

  std::shared_ptr<UserQuotas> quotas_;
  uid_t user_ = 0;
  UserResource resource_ = UserResource::Connections;
  uint64_t amount_ = 0;
};

}  // namespace braid
