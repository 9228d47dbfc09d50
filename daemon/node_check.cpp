// SPDX-License-Identifier: Apache-2.0
#include "daemon/node_check.h"

#include <algorithm>
#include <utility>

#include "config/host_check.h"
#include "config/listen_check.h"
#include "config/rails.h"
#include "daemon/daemon_options.h"
#include "net/flow_network.h"

namespace braid {
namespace {

bool is_of_a_set_key(const std::string& trouble, const ConfigOrigins& origins) {
  return origins.contains(std::string_view(trouble).substr(0, trouble.find(':')));
}

}  // namespace

NodeCheck check_node(const LoadedConfig& loaded) {
  const DaemonConfig& config = loaded.config;
  const auto network = list_network();
  if (!network) return {{network.status().message()}};
  std::vector<std::string> troubles = find_host_troubles(config, *network);
  const auto rails = resolve_rails(config, *network);
  TransportOptions transport;
  std::string address;
  if (rails) {
    transport = transport_options(config, *rails);
    const Status found = FlowNetwork::check(transport);
    if (!found) troubles.push_back(found.message());
    if (const auto resolved = resolve_address(config, rails->front(), *network))
      address = *resolved;
  }
  const ListenCheck listening = check_listening(config, address);
  troubles.insert(troubles.end(), listening.troubles.begin(), listening.troubles.end());
  if (!listening.is_served) {
    const size_t io_loops = engine_options(config).io_loops;
    for (const Status& fault : FlowNetwork::find_port_faults(transport, io_loops))
      troubles.push_back(fault.message());
  }
  // A default that stands in for a value that is wrong says nothing.
  if (!loaded.is_ok()) {
    std::erase_if(troubles, [&](const std::string& trouble) {
      return !is_of_a_set_key(trouble, loaded.origins);
    });
  }
  for (std::string& trouble : troubles) trouble = tell_origin(trouble, loaded.origins);
  return {std::move(troubles), listening.is_served};
}

}  // namespace braid
