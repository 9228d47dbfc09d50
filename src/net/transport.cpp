// SPDX-License-Identifier: Apache-2.0
#include "net/transport.h"

#include "net/flow_messages.h"
#include "net/flow_network.h"
#include "net/flow_transport.h"
#include "proto/chunk.h"

namespace braid {
namespace {

Status check(const std::vector<IoLoop>& io_loops, const TransportOptions& options) {
  if (io_loops.empty() || io_loops.size() > kIoLoopsMax) {
    return make_status(StatusCode::InvalidArgument, "{} I/O loops; use 1 to {}", io_loops.size(),
                       kIoLoopsMax);
  }
  if (options.rails.empty() || options.transports.empty()) {
    return {StatusCode::InvalidArgument,
            "the transport needs at least one rail and one UCX transport"};
  }
  if (options.flows_per_link == 0 || options.flows_per_link > kFlowsPerLinkMax) {
    return make_status(StatusCode::InvalidArgument, "{} flows per link; use 1 to {}",
                       options.flows_per_link, kFlowsPerLinkMax);
  }
  if (options.chunk_bytes == 0 || options.chunk_bytes > proto::kChunkBytesMax) {
    return make_status(StatusCode::InvalidArgument, "chunks of {} bytes; use 1 to {}",
                       options.chunk_bytes, proto::kChunkBytesMax);
  }
  if (options.window_bytes == 0 || options.open_timeout_ms == 0 || options.lost_timeout_ms == 0) {
    return {StatusCode::InvalidArgument,
            "the window, the time to open a link, and the time until it is lost cannot be zero"};
  }
  return Status::ok();
}

}  // namespace

Result<std::unique_ptr<Transport>> Transport::create(Loop& control_loop,
                                                     const std::vector<IoLoop>& io_loops,
                                                     TransportOptions options,
                                                     ControlPlane& control_plane) {
  BRAID_RETURN_IF_ERROR(check(io_loops, options));
  auto network = FlowNetwork::open(options, io_loops.size());
  if (!network) return network.status();
  return std::unique_ptr<Transport>(std::make_unique<FlowTransport>(
      control_loop, io_loops, std::move(options), std::move(*network), control_plane));
}

}  // namespace braid
