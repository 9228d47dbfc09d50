// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "loop/poll.h"

namespace braid {

// What the kernel says of a network device.
struct DeviceState {
  std::string name;
  bool is_up = false;  // switched on, and with a carrier
  bool operator==(const DeviceState&) const = default;
};

// The devices in a datagram of rtnetlink (RTM_NEWLINK, RTM_DELLINK); ends where it is broken.
std::vector<DeviceState> read_device_states(std::span<const uint8_t> datagram);

// Knows which rails are up, from rtnetlink. A rail of which the kernel says nothing (it is no
// network device) is up. One loop only.
class RailWatch {
 public:
  using Callback = std::function<void(size_t rail, bool is_up)>;

  // `changed` comes for every change, also for those that are down at the beginning; not from
  // within this call.
  static Result<std::unique_ptr<RailWatch>> create(Loop& loop, std::vector<std::string> rails,
                                                   Callback changed);

 private:
  RailWatch(Fd socket, std::vector<std::string> rails, Callback changed)
      : socket_(std::move(socket)),
        rails_(std::move(rails)),
        is_up_(rails_.size(), true),
        changed_(std::move(changed)) {}
  Status ask_for_all();
  void read();
  void take(const DeviceState& state);

  const Fd socket_;
  std::unique_ptr<Poll> poll_;  // goes before the socket
  const std::vector<std::string> rails_;
  std::vector<bool> is_up_;
  const Callback changed_;
};

}  // namespace braid
