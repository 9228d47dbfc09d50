// SPDX-License-Identifier: Apache-2.0
#include "metrics/status_queries.h"

#include <utility>

namespace braid {

Status StatusQueries::add(uint64_t client) {
  const auto waiting_in = [client](const Waiting& waiting) {
    const auto found = waiting.find(client);
    return found == waiting.end() ? 0 : found->second;
  };
  if (waiting_in(pending_) + waiting_in(asked_) >= kPerClientMax) {
    return make_status(StatusCode::ResourceExhausted,
                       "{} status queries of this client wait for an answer already: read one "
                       "before you ask again",
                       kPerClientMax);
  }
  ++asked_[client];
  if (!is_gathering_) gather();
  return Status::ok();
}

void StatusQueries::gather() {
  is_gathering_ = true;
  pending_ = std::exchange(asked_, {});
  gather_([this](const Flows& flows) { finish(flows); });
}

void StatusQueries::finish(const Flows& flows) {
  is_gathering_ = false;
  const Waiting answered = std::exchange(pending_, {});
  if (!asked_.empty()) gather();
  for (const auto& [client, queries] : answered) {
    for (uint32_t i = 0; i < queries; ++i) answer_(client, flows);
  }
}

}  // namespace braid
