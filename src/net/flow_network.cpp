// SPDX-License-Identifier: Apache-2.0
#include "net/flow_network.h"

#include "net/tcp/tcp_network.h"
#include "net/ucx/ucx_network.h"

namespace braid {

Result<std::shared_ptr<FlowNetwork>> FlowNetwork::open(const TransportOptions& options,
                                                       size_t io_loops) {
  return options.is_native_tcp() ? TcpNetwork::open(options, io_loops) : UcxNetwork::open(options);
}

Status FlowNetwork::check(const TransportOptions& options) {
  return options.is_native_tcp() ? TcpNetwork::check(options) : UcxNetwork::open(options).status();
}

}  // namespace braid
