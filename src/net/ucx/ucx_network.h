// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/flow_network.h"
#include "net/ucx/ucx_context.h"

namespace braid {

// Flows over UCX: RDMA, and TCP where `transport.tcp` says so.
class UcxNetwork final : public FlowNetwork {
 public:
  static Result<std::shared_ptr<FlowNetwork>> open(const TransportOptions& options);
  UcxNetwork(TransportOptions options, std::vector<std::shared_ptr<UcxContext>> rails);

  std::unique_ptr<FlowChannels> channels(Loop& loop, uint16_t io_loop, PacedTasks& paced,
                                         std::atomic<uint64_t>& strangers) override;
  std::string description() const override;

 private:
  const TransportOptions options_;
  const std::vector<std::shared_ptr<UcxContext>> rails_;  // nullptr: it has had no carrier yet
};

}  // namespace braid
