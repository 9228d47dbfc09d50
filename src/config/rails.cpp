// SPDX-License-Identifier: Apache-2.0
#include "config/rails.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/ranges.h>
#include <unistd.h>

namespace braid {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

bool is_usable(const NetworkInterface& interface) {
  return interface.is_up && !interface.address.empty();
}

const NetworkInterface* find(const Network& network, const std::string& name) {
  const auto found = std::find_if(network.interfaces.begin(), network.interfaces.end(),
                                  [&](const NetworkInterface& one) { return one.name == name; });
  return found == network.interfaces.end() ? nullptr : &*found;
}

// "eth0 (192.0.2.2), ib0 (down), lo (127.0.0.1)"
std::string describe(const Network& network) {
  std::vector<std::string> lines;
  for (const NetworkInterface& one : network.interfaces) {
    const std::string state = !one.is_up            ? "down"
                              : !one.has_carrier    ? "no carrier"
                              : one.address.empty() ? "no IPv4 address"
                                                    : one.address;
    lines.push_back(fmt::format("{} ({})", one.name, state));
  }
  return lines.empty() ? "none" : fmt::format("{}", fmt::join(lines, ", "));
}

Result<std::string> choose_rail(const Network& network) {
  const NetworkInterface* route = find(network, network.default_route);
  if (route != nullptr && is_usable(*route)) return route->name;
  for (const bool loopback : {false, true}) {
    for (const NetworkInterface& one : network.interfaces) {
      if (one.is_loopback == loopback && is_usable(one)) return one.name;
    }
  }
  return make_status(StatusCode::NotFound,
                     "transport.rails: auto finds no interface that is up with an IPv4 address; "
                     "the interfaces are: {}",
                     describe(network));
}

// Whether its link may come up later, and its address with it.
bool may_be_late(const std::string& rail, const Network& network) {
  const NetworkInterface* interface = find(network, rail);
  return interface != nullptr && !(interface->is_up && interface->has_carrier);
}

Status check_interface(const std::string& rail, const Network& network) {
  const NetworkInterface* interface = find(network, rail);
  if (interface == nullptr) {
    return make_status(StatusCode::NotFound,
                       "transport.rails: there is no interface '{}'; the interfaces are: {}", rail,
                       describe(network));
  }
  if (!interface->is_up) {
    return make_status(StatusCode::Unavailable,
                       "transport.rails: interface '{}' is down; bring it up, or name another of: "
                       "{}",
                       rail, describe(network));
  }
  if (!interface->has_carrier) {
    return make_status(StatusCode::Unavailable,
                       "transport.rails: interface '{}' has no carrier; look at its cable, or name "
                       "another of: {}",
                       rail, describe(network));
  }
  if (interface->address.empty()) {
    return make_status(StatusCode::Unavailable,
                       "transport.rails: interface '{}' has no IPv4 address; give it one, or name "
                       "another of: {}",
                       rail, describe(network));
  }
  return Status::ok();
}

}  // namespace

Result<std::vector<std::string>> resolve_rails(const DaemonConfig& config, const Network& network) {
  const auto& rails = config.transport.rails;
  if (rails.size() == 1 && rails.front() == kAuto) {
    auto chosen = choose_rail(network);
    if (!chosen) return chosen.status();
    return std::vector<std::string>{*chosen};
  }
  const auto& transports = config.transport.transports;
  const bool only_tcp = std::all_of(transports.begin(), transports.end(),
                                    [](const std::string& one) { return one == "tcp"; });
  if (!only_tcp) return rails;
  Status none;
  bool is_any_here = false;
  for (const std::string& rail : rails) {
    const Status here = check_interface(rail, network);
    if (!here && !may_be_late(rail, network)) return here;
    if (!here && none.is_ok()) none = here;
    is_any_here = is_any_here || here.is_ok();
  }
  if (!is_any_here) return none;
  return rails;
}

Result<std::string> resolve_address(const DaemonConfig& config, const std::string& first_rail,
                                    const Network& network) {
  if (config.node.address != kAuto) return config.node.address;
  const NetworkInterface* interface = find(network, first_rail);
  if (interface != nullptr && !interface->address.empty()) return interface->address;
  return make_status(StatusCode::InvalidArgument,
                     "node.address: rail '{}' has no IPv4 address to stand for auto; set "
                     "node.address to the one that other nodes reach; the interfaces are: {}",
                     first_rail, describe(network));
}

std::string resolve_listen(const DaemonConfig& config, const std::string& node_address) {
  if (config.control.listen != kAuto) return config.control.listen;
  return config.control.cluster_key_file.empty() ? kLoopback : node_address;
}

Result<std::string> resolve_node_name(const DaemonConfig& config) {
  if (config.node.name != kAuto) return config.node.name;
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) {
    return Status::from_errno(errno, "node.name: the host name is not known");
  }
  const std::string host(name.data());
  const std::string short_name = host.substr(0, host.find('.'));
  if (short_name.empty()) {
    return make_status(StatusCode::NotFound,
                       "node.name: the host has no name to stand for auto; set node.name");
  }
  return short_name;
}

}  // namespace braid
