// SPDX-License-Identifier: Apache-2.0
#include "net/rail_watch.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include "base/log.h"

namespace braid {
namespace {

constexpr size_t kDatagramBytesMax = 64 << 10;
constexpr int kDatagramsMax = 64;  // taken at once; the loop has other things to do, too

// The structure at the front of `bytes`, if it fits there.
template <typename T>
std::optional<T> read_front(std::span<const uint8_t> bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

std::span<const uint8_t> without_front(std::span<const uint8_t> bytes, size_t length) {
  return bytes.subspan(std::min(bytes.size(), length));
}

// `attributes`: those of one device.
std::string name_in(std::span<const uint8_t> attributes) {
  while (const auto attribute = read_front<rtattr>(attributes)) {
    if (attribute->rta_len < sizeof(rtattr) || attribute->rta_len > attributes.size()) break;
    if (attribute->rta_type == IFLA_IFNAME) {
      const auto text = attributes.first(attribute->rta_len).subspan(RTA_LENGTH(0));
      const auto* begin = reinterpret_cast<const char*>(text.data());
      return {begin, ::strnlen(begin, text.size())};
    }
    attributes = without_front(attributes, RTA_ALIGN(size_t{attribute->rta_len}));
  }
  return {};
}

}  // namespace

std::vector<DeviceState> read_device_states(std::span<const uint8_t> datagram) {
  std::vector<DeviceState> states;
  while (const auto header = read_front<nlmsghdr>(datagram)) {
    if (header->nlmsg_len < sizeof(nlmsghdr) || header->nlmsg_len > datagram.size()) break;
    const auto body =
        without_front(datagram.first(header->nlmsg_len), NLMSG_ALIGN(sizeof(nlmsghdr)));
    datagram = without_front(datagram, NLMSG_ALIGN(size_t{header->nlmsg_len}));
    if (header->nlmsg_type != RTM_NEWLINK && header->nlmsg_type != RTM_DELLINK) continue;
    const auto device = read_front<ifinfomsg>(body);
    if (!device) continue;
    const std::string name = name_in(without_front(body, NLMSG_ALIGN(sizeof(ifinfomsg))));
    if (name.empty()) continue;
    // Running: with a carrier, and its operational state is up, or unknown to its driver.
    constexpr unsigned kIsUp = IFF_UP | IFF_RUNNING;
    states.push_back(
        {name, header->nlmsg_type == RTM_NEWLINK && (device->ifi_flags & kIsUp) == kIsUp});
  }
  return states;
}

Result<std::unique_ptr<RailWatch>> RailWatch::create(Loop& loop, std::vector<std::string> rails,
                                                     Callback changed) {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!socket.is_valid()) return Status::from_errno(errno, "cannot ask the kernel about devices");
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return Status::from_errno(errno, "the kernel will not tell of changes of devices");
  std::unique_ptr<RailWatch> watch(
      new RailWatch(std::move(socket), std::move(rails), std::move(changed)));
  BRAID_RETURN_IF_ERROR(watch->ask_for_all());
  auto poll = Poll::create(loop, watch->socket_.get());
  if (!poll) return poll.status();
  watch->poll_ = std::move(*poll);
  watch->poll_->start(UV_READABLE, [watch = watch.get()](int) { watch->read(); });
  return watch;
}

Status RailWatch::ask_for_all() {
  struct {
    nlmsghdr header;
    ifinfomsg body;
  } request{};
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = RTM_GETLINK;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.ifi_family = AF_UNSPEC;
  if (::send(socket_.get(), &request, sizeof(request), 0) < 0)
    return Status::from_errno(errno, "cannot ask the kernel about devices");
  return Status::ok();
}

void RailWatch::read() {
  std::array<uint8_t, kDatagramBytesMax> buffer;
  for (int i = 0; i < kDatagramsMax; ++i) {
    sockaddr_nl from{};
    socklen_t from_bytes = sizeof(from);
    const ssize_t bytes = ::recvfrom(socket_.get(), buffer.data(), buffer.size(), 0,
                                     reinterpret_cast<sockaddr*>(&from), &from_bytes);
    if (bytes < 0 && errno == ENOBUFS) {  // it said more than fits: some of it is lost
      if (Status asked = ask_for_all(); !asked) BRAID_LOG_WARN("{}", asked.message());
      continue;
    }
    if (bytes <= 0) return;
    if (from.nl_pid != 0) continue;  // not from the kernel
    for (const DeviceState& state :
         read_device_states(std::span(buffer).first(static_cast<size_t>(bytes)))) {
      take(state);
    }
  }
}

void RailWatch::take(const DeviceState& state) {
  for (size_t rail = 0; rail < rails_.size(); ++rail) {
    if (rails_[rail] != state.name || is_up_[rail] == state.is_up) continue;
    is_up_[rail] = state.is_up;
    changed_(rail, state.is_up);
  }
}

}  // namespace braid
