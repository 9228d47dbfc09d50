// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/tcp_worker_address.h"

#include <algorithm>
#include <cstring>

#include <netinet/in.h>

namespace braid {
namespace {

// In UCX's address, versions 1.13 to 1.22: in front of an IP address there are flags (0) and the
// family, in front of the port the length of the transport's address (2) with the mark that it is
// the last.
constexpr uint8_t kNoFlags = 0;
constexpr uint8_t kLastOfTwoBytes = 0x82;

constexpr uint8_t kFirstMulticast = 224;  // and all that is above is nobody's address

std::vector<uint8_t> ip_of(const SocketAddress& address) {
  const auto bytes_of = [](const auto& ip) {
    const auto* begin = reinterpret_cast<const uint8_t*>(&ip);
    return std::vector<uint8_t>(begin, begin + sizeof(ip));
  };
  if (address.get()->sa_family == AF_INET)
    return bytes_of(reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr);
  return bytes_of(reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr);
}

// Where `pattern` is, if it is at one place behind `from`.
std::optional<size_t> find_once(std::span<const uint8_t> bytes, size_t from,
                                const std::vector<uint8_t>& pattern) {
  const auto behind = bytes.subspan(from);
  const auto find = [&](auto begin) {
    return std::search(begin, behind.end(), pattern.begin(), pattern.end());
  };
  const auto found = find(behind.begin());
  if (found == behind.end() || find(found + 1) != behind.end()) return std::nullopt;
  return from + static_cast<size_t>(found - behind.begin());
}

bool may_be_a_host(std::span<const uint8_t> ip) {
  const bool is_zero = std::all_of(ip.begin(), ip.end(), [](uint8_t byte) { return byte == 0; });
  if (is_zero) return ip.empty();
  return ip.size() == sizeof(in_addr) ? ip[0] != 0 && ip[0] < kFirstMulticast : ip[0] != 0xff;
}

bool are_equal(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

std::optional<TcpWorkerAddress> TcpWorkerAddress::take_apart(std::vector<uint8_t> whole,
                                                             uint64_t worker,
                                                             const SocketAddress& listening) {
  std::vector<uint8_t> number(sizeof(worker));
  std::memcpy(number.data(), &worker, sizeof(worker));
  const auto worker_at = find_once(whole, 0, number);
  if (!worker_at) return std::nullopt;
  const size_t behind = *worker_at + number.size();
  const uint16_t port = listening.port();
  const auto port_at =
      find_once(whole, behind,
                {kLastOfTwoBytes, static_cast<uint8_t>(port >> 8), static_cast<uint8_t>(port)});
  if (!port_at) return std::nullopt;
  Part ip;
  if (!listening.is_loopback()) {
    std::vector<uint8_t> device{kNoFlags, static_cast<uint8_t>(listening.get()->sa_family)};
    const std::vector<uint8_t> bytes = ip_of(listening);
    device.insert(device.end(), bytes.begin(), bytes.end());
    const auto device_at = find_once(whole, behind, device);
    if (!device_at) return std::nullopt;
    ip = {*device_at + 2, bytes.size()};
  }
  return TcpWorkerAddress(std::move(whole), {*worker_at, number.size()},
                          {*port_at + 1, sizeof(port)}, ip);
}

std::vector<uint8_t> TcpWorkerAddress::parts() const {
  std::vector<uint8_t> parts;
  for (const Part& part : {worker_, port_, ip_})
    parts.insert(parts.end(), own(part).begin(), own(part).end());
  return parts;
}

Result<std::vector<uint8_t>> TcpWorkerAddress::with(std::span<const uint8_t> parts) const {
  const size_t bytes = worker_.bytes + port_.bytes + ip_.bytes;
  if (parts.size() != bytes) {
    return make_status(StatusCode::Protocol,
                       "the other node's UCX worker has an address of {} bytes, and from this rail "
                       "only those of {} are reached: are both rails on the loopback device, or "
                       "both of the same family of IP addresses?",
                       parts.size(), bytes);
  }
  const auto worker = parts.first(worker_.bytes);
  const auto port = parts.subspan(worker_.bytes, port_.bytes);
  const auto ip = parts.last(ip_.bytes);
  const bool is_nobody =
      std::all_of(worker.begin(), worker.end(), [](uint8_t byte) { return byte == 0; }) ||
      (port[0] == 0 && port[1] == 0) || !may_be_a_host(ip);
  const bool is_own =
      are_equal(worker, own(worker_)) || (are_equal(port, own(port_)) && are_equal(ip, own(ip_)));
  if (is_nobody || is_own) {
    return Status(StatusCode::Protocol, is_own
                                            ? "the other node gives this worker's own address"
                                            : "the other node gives an address that is nobody's");
  }
  std::vector<uint8_t> whole = whole_;
  std::copy(worker.begin(), worker.end(), whole.begin() + static_cast<ptrdiff_t>(worker_.at));
  std::copy(port.begin(), port.end(), whole.begin() + static_cast<ptrdiff_t>(port_.at));
  std::copy(ip.begin(), ip.end(), whole.begin() + static_cast<ptrdiff_t>(ip_.at));
  return whole;
}

}  // namespace braid
