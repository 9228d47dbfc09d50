// SPDX-License-Identifier: Apache-2.0
#include "config/host_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/local_host.h"
#include "base/socket_address.h"
#include "base/user_group.h"
#include "config/cluster_key.h"
#include "config/rails.h"
#include "config/secret_file.h"

namespace braid {
namespace {

bool is_own(const std::string& address) {
  const auto parsed = SocketAddress::parse(address, 0);
  return (parsed && parsed->is_any()) || is_loopback_host(address) || is_local_host(address);
}

// Whether this process may give its files to the group.
bool may_give_to(gid_t group) {
  return ::geteuid() == 0 || ::getegid() == group || ::group_member(group) != 0;
}

// "node.address: 192.0.2.7 is no address of this machine, which has eth0 (192.0.2.2)"
std::string not_own_address(const std::string& key, const std::string& address) {
  return fmt::format("{}: {} is no address of this machine, which has {}", key, address,
                     own_interfaces());
}

}  // namespace

std::vector<std::string> find_host_troubles(const DaemonConfig& config, const Network& network) {
  std::vector<std::string> troubles;
  const auto note = [&troubles](const auto& outcome) {
    if (!outcome) troubles.push_back(outcome.status().message());
  };
  note(load_cluster_key(config.control.cluster_key_file));
  if (config.page.access.starts_with('/')) note(load_page_token(config.page.access));
  if (const std::string& name = config.client.group; !name.empty()) {
    const auto group = find_client_group(name);
    if (!group) {
      troubles.push_back("client.group: " + group.status().message());
    } else if (!may_give_to(*group)) {
      troubles.push_back(fmt::format(
          "client.group: user {} is no member of the group '{}', and so cannot give it the socket; "
          "run braidd as root or as a member, or set client.group to nothing",
          ::geteuid(), name));
    }
  }
  const std::vector<Status> rail_faults = find_rail_faults(config, network);
  for (const Status& fault : rail_faults) troubles.push_back(fault.message());
  if (rail_faults.empty()) {
    const auto rails = resolve_rails(config, network);
    note(rails);
    if (rails) note(resolve_address(config, rails->front(), network));
  }
  // Without a key there is no listener.
  const bool has_listener = !config.control.cluster_key_file.empty();
  const std::string& listen = config.control.listen;
  const std::string& address = config.node.address;
  if (has_listener && listen == kAuto && address != kAuto && !is_own(address)) {
    troubles.push_back(
        not_own_address("node.address", address) +
        "; use one of these, or auto; where others reach this machine at an "
        "address that is translated, set control.listen to 0.0.0.0 or \"::\" as well");
  }
  if (has_listener && listen != kAuto && !is_own(listen))
    troubles.push_back(not_own_address("control.listen", listen) + "; use one of these, or auto");
  if (config.metrics.port != 0 && !is_own(config.metrics.address)) {
    troubles.push_back(not_own_address("metrics.address", config.metrics.address) +
                       "; use one of these, or 127.0.0.1");
  }
  return troubles;
}

}  // namespace braid
