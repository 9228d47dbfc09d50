// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "loop/paced_tasks.h"
#include "net/flow_channel.h"
#include "net/transport.h"

namespace braid {

// The rails of this node as one kind of transport uses them; all loops share it.
class FlowNetwork {
 public:
  virtual ~FlowNetwork() = default;

  // Fails if a rail cannot be used, naming those that can, or if none has a carrier.
  static Result<std::shared_ptr<FlowNetwork>> open(const TransportOptions& options,
                                                   size_t io_loops);
  // What open() would say of the rails. Nothing is begun that others could see.
  static Status check(const TransportOptions& options);
  // Why open() could not listen on ports that the configuration names, one Status for each port and
  // rail that is here. They are opened for a moment.
  static std::vector<Status> find_port_faults(const TransportOptions& options, size_t io_loops);

  // `strangers` counts the connections that were refused on the loop. All outlive the channels.
  virtual std::unique_ptr<FlowChannels> channels(Loop& loop, uint16_t io_loop, PacedTasks& paced,
                                                 std::atomic<uint64_t>& strangers) = 0;
  virtual std::string description() const = 0;  // "UCX 1.13.1, tcp"
};

}  // namespace braid
