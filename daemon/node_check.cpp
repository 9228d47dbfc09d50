// SPDX-License-Identifier: Apache-2.0
#include "daemon/node_check.h"

#include "config/host_check.h"
#include "config/rails.h"
#include "daemon/daemon_options.h"
#include "net/rail_contexts.h"

namespace braid {

std::vector<std::string> find_node_troubles(const DaemonConfig& config) {
  const auto network = list_network();
  if (!network) return {network.status().message()};
  std::vector<std::string> troubles = find_host_troubles(config, *network);
  if (const auto rails = resolve_rails(config, *network)) {
    const auto opened = open_rails(transport_options(config, *rails));
    if (!opened) troubles.push_back(opened.status().message());
  }
  return troubles;
}

}  // namespace braid
