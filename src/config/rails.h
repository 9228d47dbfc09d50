// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "config/config.h"
#include "config/network.h"

namespace braid {

// The devices that transport.rails means. "auto" is the interface of the default route, else the
// one that has node.address, else the first that has a carrier and is no bridge, else a bridge,
// else one without a carrier, else lo, each only if it is up and has an IP address that is not
// link-local. If every transport is tcp, a named rail must be up with an IP address of any kind, or
// be one whose link is not up yet, beside at least one that is; other transports know devices that
// only UCX can judge (mlx5_0:1). Errors name the key and list the interfaces there are.
Result<std::vector<std::string>> resolve_rails(const DaemonConfig& config, const Network& network);

// All rails that are named and keep a daemon from starting, one Status each; none: it starts. A
// rail that may come up later is one of them only if no other one is here. Not looked at where
// resolve_rails takes what is named.
std::vector<Status> find_rail_faults(const DaemonConfig& config, const Network& network);

// One sentence for the log: which rails were taken, why, and which other interfaces there are.
std::string describe_choice(const DaemonConfig& config, const std::vector<std::string>& rails,
                            const std::string& node_address, const Network& network);

// The address that node.address means: "auto" is the address of the first rail, IPv4 if it has one.
Result<std::string> resolve_address(const DaemonConfig& config, const std::string& first_rail,
                                    const Network& network);

// The address that control.listen means, given node.address as resolved.
std::string resolve_listen(const DaemonConfig& config, const std::string& node_address);

// Why no other node reaches the daemon, and what would change that: for the middle of a sentence.
// Empty: others reach it.
std::string why_own_host_only(const DaemonConfig& config, const std::string& node_address);

// The name that node.name means: "auto" is the host name up to its first dot.
Result<std::string> resolve_node_name(const DaemonConfig& config);

}  // namespace braid
