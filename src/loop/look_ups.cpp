// SPDX-License-Identifier: Apache-2.0
#include "loop/look_ups.h"

namespace braid {

// Never destroyed: a look-up may outlive what the process destroys at its end.
const std::shared_ptr<LookUps>& LookUps::of_process() {
  static const auto* const all = new std::shared_ptr<LookUps>(std::make_shared<LookUps>());
  return *all;
}

Status LookUps::begin(const std::string& host, std::optional<uint32_t> user) {
  MutexLock lock(mutex_);
  const auto found = of_user_.find(user);
  const size_t own = found == of_user_.end() ? 0 : found->second;
  if (user && own >= kPerUserMax) {
    return make_status(StatusCode::Unavailable,
                       "host name '{}' cannot be looked up now: {} look-ups of user {} wait for "
                       "this node's name servers already, which is one user's share",
                       host, own, *user);
  }
  if (own > 0 && count_ >= kMax) {
    return make_status(StatusCode::Unavailable,
                       "host name '{}' cannot be looked up now: {} look-ups wait for this node's "
                       "name servers already",
                       host, count_);
  }
  ++count_;
  ++of_user_[user];
  return Status::ok();
}

void LookUps::end(std::optional<uint32_t> user) {
  MutexLock lock(mutex_);
  --count_;
  const auto own = of_user_.find(user);
  if (--own->second == 0) of_user_.erase(own);
}

}  // namespace braid
