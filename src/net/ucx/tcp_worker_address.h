// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/socket_address.h"
#include "base/status.h"

namespace braid {

// The address of a UCX worker on TCP, in its parts. UCX reads an address without looking whether it
// can be one, and changed ones end the process. So nodes tell each other only what an address is
// built from: the worker's number, its port and its IP address. UCX is given the address of this
// node's own worker with the other one's parts in their places.
class TcpWorkerAddress {
 public:
  // `whole`: as UCX gives it. Nothing: this version of UCX writes it in another way than those that
  // braid knows.
  static std::optional<TcpWorkerAddress> take_apart(std::vector<uint8_t> whole, uint64_t worker,
                                                    const SocketAddress& listening);

  // What the other node is told.
  std::vector<uint8_t> parts() const;
  // The whole address of another worker. Protocol: its parts cannot be.
  Result<std::vector<uint8_t>> with(std::span<const uint8_t> parts) const;

 private:
  struct Part {
    size_t at = 0;
    size_t bytes = 0;
  };
  TcpWorkerAddress(std::vector<uint8_t> whole, Part worker, Part port, Part ip)
      : whole_(std::move(whole)), worker_(worker), port_(port), ip_(ip) {}
  std::span<const uint8_t> own(const Part& part) const {
    return std::span(whole_).subspan(part.at, part.bytes);
  }

  std::vector<uint8_t> whole_;
  Part worker_;
  Part port_;
  Part ip_;  // of no bytes: a loopback device, which has none in its address
};

}  // namespace braid
