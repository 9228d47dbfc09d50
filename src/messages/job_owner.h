// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <flatbuffers/flatbuffers.h>
#include <sys/types.h>

#include "base/status.h"

namespace braid {

// Whose a job is: a digest of the token that its ranks share, or, where they have none, of their
// user. A node makes it from what its trainer said and what the kernel says of him, so a trainer
// cannot choose it; from one node to the next it goes without the token.
using JobOwner = std::array<uint8_t, 32>;

inline constexpr size_t kJobTokenBytesMax = 255;

// `token` empty: the job is the user's.
JobOwner job_owner(const std::string& job_name, std::span<const uint8_t> token, uid_t user);
// As it came in a control message.
Result<JobOwner> parse_job_owner(const flatbuffers::Vector<uint8_t>* bytes);

// What tells jobs apart that have no key yet: ranks of the same one belong together, and others can
// neither join nor stop them, whatever name they give.
struct JobIdentity {
  std::string name;
  JobOwner owner{};
  // In a time that does not tell how much of the owner is right.
  bool operator==(const JobIdentity& other) const;
};

}  // namespace braid

// By name alone: owners of one name meet in operator==.
template <>
struct std::hash<braid::JobIdentity> {
  size_t operator()(const braid::JobIdentity& identity) const {
    return std::hash<std::string>()(identity.name);
  }
};
