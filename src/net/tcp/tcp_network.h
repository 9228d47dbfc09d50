// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "net/flow_network.h"
#include "net/tcp/tcp_rail.h"

namespace braid {

// A rail, and the socket on which a loop waits for flows on it; none where there are no other
// nodes.
struct ListeningRail {
  TcpRail rail;
  Fd socket;
};

// Flows over TCP sockets of our own.
class TcpNetwork final : public FlowNetwork {
 public:
  static Result<std::shared_ptr<FlowNetwork>> open(const TransportOptions& options,
                                                   size_t io_loops);
  // Whether open() would find the rails, without listening anywhere.
  static Status check(const TransportOptions& options);
  static std::vector<Status> find_port_faults(const TransportOptions& options, size_t io_loops);

  std::unique_ptr<FlowChannels> channels(Loop& loop, uint16_t io_loop, PacedTasks& paced,
                                         std::atomic<uint64_t>& strangers) override;
  std::string description() const override { return "TCP"; }

 private:
  TcpNetwork(const TransportOptions& options, size_t io_loops);

  const TransportOptions options_;
  // By I/O loop, then by rail; taken by channels(). Nothing: the rail has had no carrier yet.
  std::vector<std::vector<std::unique_ptr<ListeningRail>>> rails_;
};

}  // namespace braid
