// SPDX-License-Identifier: Apache-2.0
#include "net/flow_network.h"

#include "net/tcp/tcp_network.h"
#include "net/ucx/ucx_network.h"

namespace braid {
namespace {

Status check_can_encrypt(const TransportOptions& options) {
  if (!options.encrypts || options.is_native_tcp()) return Status::ok();
  return {StatusCode::InvalidArgument, "UCX carries flows in clear, so they cannot be encrypted"};
}

}  // namespace

Result<std::shared_ptr<FlowNetwork>> FlowNetwork::open(const TransportOptions& options,
                                                       size_t io_loops) {
  BRAID_RETURN_IF_ERROR(check_can_encrypt(options));
  return options.is_native_tcp() ? TcpNetwork::open(options, io_loops) : UcxNetwork::open(options);
}

Status FlowNetwork::check(const TransportOptions& options) {
  BRAID_RETURN_IF_ERROR(check_can_encrypt(options));
  return options.is_native_tcp() ? TcpNetwork::check(options) : UcxNetwork::open(options).status();
}

std::vector<Status> FlowNetwork::find_port_faults(const TransportOptions& options,
                                                  size_t io_loops) {
  if (!options.is_native_tcp()) return {};
  return TcpNetwork::find_port_faults(options, io_loops);
}

}  // namespace braid
