// SPDX-License-Identifier: Apache-2.0
#include "config/rails.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/ranges.h>
#include <unistd.h>

#include "base/local_host.h"
#include "base/socket_address.h"

namespace braid {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr const char* kLinkLocal = "fe80:";

// Whether auto may take it: nodes without a router still have link-local addresses everywhere, also
// on a container's cable.
bool is_usable(const NetworkInterface& interface) {
  return interface.is_up && !interface.addresses.empty() &&
         !interface.address().starts_with(kLinkLocal);
}

const NetworkInterface* find(const Network& network, const std::string& name) {
  const auto found = std::find_if(network.interfaces.begin(), network.interfaces.end(),
                                  [&](const NetworkInterface& one) { return one.name == name; });
  return found == network.interfaces.end() ? nullptr : &*found;
}

// All but link-local ones, unless there is no other.
std::string addresses_of(const NetworkInterface& one) {
  std::string text = one.address();
  for (size_t i = 1; i < one.addresses.size(); ++i) {
    if (!one.addresses[i].starts_with(kLinkLocal)) text += ", " + one.addresses[i];
  }
  return text;
}

// "eth0 (192.0.2.2, 2001:db8::2)", "docker0 (172.17.0.1, bridge)"
std::string describe(const NetworkInterface& one) {
  const std::string state = !one.is_up              ? "down"
                            : !one.has_carrier      ? "no carrier"
                            : one.addresses.empty() ? "no IP address"
                                                    : addresses_of(one);
  return fmt::format("{} ({}{})", one.name, state, one.is_internal ? ", bridge" : "");
}

// All but `except`, in the kernel's order.
std::string describe(const Network& network, const std::vector<std::string>& except = {}) {
  std::vector<std::string> lines;
  for (const NetworkInterface& one : network.interfaces) {
    if (std::find(except.begin(), except.end(), one.name) == except.end())
      lines.push_back(describe(one));
  }
  return lines.empty() ? "none" : fmt::format("{}", fmt::join(lines, ", "));
}

// Without a default route: what probably leads to other nodes comes first. A bridge without a
// carrier has not even a container, and comes behind lo.
enum class Likelihood : uint8_t { Linked, Internal, Unlinked, Loopback, Nothing };

Likelihood likelihood_of(const NetworkInterface& one) {
  if (one.is_loopback) return Likelihood::Loopback;
  if (one.is_internal) return one.has_carrier ? Likelihood::Internal : Likelihood::Nothing;
  return one.has_carrier ? Likelihood::Linked : Likelihood::Unlinked;
}

const NetworkInterface* find_default_route(const Network& network) {
  const NetworkInterface* route = find(network, network.default_route);
  return route != nullptr && is_usable(*route) ? route : nullptr;
}

const NetworkInterface* find_address(const Network& network, const std::string& address) {
  const auto parsed = SocketAddress::parse(address, 0);
  const std::string wanted = parsed ? parsed->host() : address;
  const auto found = std::ranges::find_if(network.interfaces, [&](const NetworkInterface& one) {
    return one.is_up && std::ranges::count(one.addresses, wanted) != 0;
  });
  return found == network.interfaces.end() ? nullptr : &*found;
}

Result<std::string> choose_rail(const DaemonConfig& config, const Network& network) {
  if (const NetworkInterface* route = find_default_route(network)) return route->name;
  if (const NetworkInterface* own = find_address(network, config.node.address)) return own->name;
  const NetworkInterface* best = nullptr;
  for (const NetworkInterface& one : network.interfaces) {
    if (!is_usable(one)) continue;
    if (best == nullptr || likelihood_of(one) < likelihood_of(*best)) best = &one;
  }
  if (best != nullptr) return best->name;
  return make_status(StatusCode::NotFound,
                     "transport.rails: auto finds no interface that is up with an IP address; "
                     "the interfaces are: {}",
                     describe(network));
}

bool names_auto(const DaemonConfig& config) {
  return config.transport.rails == std::vector<std::string>{kAuto};
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
  if (interface->addresses.empty()) {
    return make_status(StatusCode::Unavailable,
                       "transport.rails: interface '{}' has no IP address; give it one, or name "
                       "another of: {}",
                       rail, describe(network));
  }
  return Status::ok();
}

// A link-local address was set, which the checks of its text have passed.
Status no_device(const std::string& key, const std::string& address) {
  return make_status(StatusCode::InvalidArgument,
                     "{}: this machine has no device '{}', which {} names (ip link shows them)",
                     key, address.substr(address.find('%') + 1), address);
}

}  // namespace

std::vector<Status> find_rail_faults(const DaemonConfig& config, const Network& network) {
  const auto& transports = config.transport.transports;
  const bool is_only_tcp =
      std::ranges::all_of(transports, [](const auto& one) { return one == "tcp"; });
  if (names_auto(config) || !is_only_tcp) return {};
  std::vector<Status> faults;
  std::vector<Status> late;
  for (const std::string& rail : config.transport.rails) {
    Status here = check_interface(rail, network);
    if (here) continue;
    (may_be_late(rail, network) ? late : faults).push_back(std::move(here));
  }
  const bool is_any_here = faults.size() + late.size() < config.transport.rails.size();
  if (!is_any_here) faults.insert(faults.end(), late.begin(), late.end());
  return faults;
}

Result<std::vector<std::string>> resolve_rails(const DaemonConfig& config, const Network& network) {
  if (names_auto(config)) {
    auto chosen = choose_rail(config, network);
    if (!chosen) return chosen.status();
    return std::vector<std::string>{*chosen};
  }
  const std::vector<Status> faults = find_rail_faults(config, network);
  if (!faults.empty()) return faults.front();
  return config.transport.rails;
}

std::string describe_choice(const DaemonConfig& config, const std::vector<std::string>& rails,
                            const std::string& node_address, const Network& network) {
  std::string why;
  if (!names_auto(config)) {
    why = "transport.rails names it";
    if (rails.size() > 1) why = "transport.rails names them";
  } else if (const NetworkInterface* route = find_default_route(network)) {
    why = "the default route goes over it";
    if (route->name != rails.front()) why.clear();
  } else if (find_address(network, config.node.address) != nullptr) {
    why = "it has node.address";
  } else {
    why =
        "there is no default route, and it comes first of those that are no bridges; if other "
        "nodes are elsewhere, set transport.rails";
  }
  return fmt::format("rail {} ({}); other nodes reach this one at {}; the other interfaces are: {}",
                     fmt::join(rails, ", "), why, node_address, describe(network, rails));
}

Result<std::string> resolve_address(const DaemonConfig& config, const std::string& first_rail,
                                    const Network& network) {
  if (config.node.address != kAuto) {
    const auto address = SocketAddress::parse(config.node.address, 0);
    if (!address) return no_device("node.address", config.node.address);
    if (!address->is_any()) return address->host();
    return make_status(StatusCode::InvalidArgument,
                       "node.address: {0} is no address that other nodes reach; use one of this "
                       "machine's, or auto; control.listen: {0} opens the port on all of them",
                       config.node.address);
  }
  const NetworkInterface* interface = find(network, first_rail);
  if (interface != nullptr && !interface->addresses.empty()) return interface->address();
  return make_status(StatusCode::InvalidArgument,
                     "node.address: rail '{}' has no IP address to stand for auto; set "
                     "node.address to the one that other nodes reach; the interfaces are: {}",
                     first_rail, describe(network));
}

std::string resolve_listen(const DaemonConfig& config, const std::string& node_address) {
  if (config.control.listen != kAuto) return config.control.listen;
  return config.control.cluster_key_file.empty() ? kLoopback : node_address;
}

std::string why_own_host_only(const DaemonConfig& config, const std::string& node_address) {
  if (config.control.cluster_key_file.empty()) {
    return "it has no cluster key: if the missing ranks are on other nodes, set "
           "control.cluster_key_file on all nodes";
  }
  const std::string listen = resolve_listen(config, node_address);
  if (!is_loopback_host(listen)) return {};
  return fmt::format(
      "{} is {}, a loopback address: if the missing ranks are on other nodes, set it "
      "to auto, or to an address that these reach",
      config.control.listen == kAuto ? "node.address" : "control.listen", listen);
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
