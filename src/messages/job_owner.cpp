// SPDX-License-Identifier: Apache-2.0
#include "messages/job_owner.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/hmac.h"

namespace braid {
namespace {

// What an owner is made from says so, so that no token stands for a user.
constexpr std::string_view kByToken = "braid job token";
constexpr std::string_view kByUser = "braid job user";

}  // namespace

JobOwner job_owner(const std::string& job_name, std::span<const uint8_t> token, uid_t user) {
  const std::string_view kind = token.empty() ? kByUser : kByToken;
  std::vector<uint8_t> message(kind.begin(), kind.end());
  if (token.empty()) {
    for (unsigned shift = 0; shift < 32; shift += 8)
      message.push_back(static_cast<uint8_t>(user >> shift));
  }
  message.insert(message.end(), job_name.begin(), job_name.end());
  return hmac_sha256(token, message);
}

Result<JobOwner> parse_job_owner(const flatbuffers::Vector<uint8_t>* bytes) {
  JobOwner owner{};
  if (bytes == nullptr || bytes->size() != owner.size()) {
    return make_status(StatusCode::Protocol, "a job's owner has {} bytes instead of {}",
                       bytes == nullptr ? 0 : bytes->size(), owner.size());
  }
  std::copy(bytes->begin(), bytes->end(), owner.begin());
  return owner;
}

bool JobIdentity::operator==(const JobIdentity& other) const {
  return name == other.name && equal_in_constant_time(owner, other.owner);
}

}  // namespace braid
