// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/io_messages.h"
#include "proto/control_generated.h"

namespace braid {

// What nodes tell each other about flows, as FlatBuffers and back. Reading checks everything: peers
// may be of another version, or broken.

inline constexpr uint16_t kFlowsPerLinkMax = 256;
inline constexpr uint16_t kIoLoopsMax = 256;
inline constexpr size_t kWorkerAddressBytesMax = 8192;

void write_flow_open(flatbuffers::FlatBufferBuilder& out, uint64_t nonce, uint16_t io_loops,
                     uint16_t flows_per_link, uint32_t chunk_bytes, std::string_view transport,
                     std::span<const FlowOffer> offers);
void write_flow_accept(flatbuffers::FlatBufferBuilder& out, const FlowOffer& offer);
void write_flow_refuse(flatbuffers::FlatBufferBuilder& out, const FlowRefusal& refusal);

Result<std::vector<FlowOffer>> read_flow_open(const proto::FlowOpen& message);
Result<std::vector<FlowOffer>> read_flow_accept(const proto::FlowAccept& message);
FlowRefusal read_flow_refuse(const proto::FlowRefuse& message);

}  // namespace braid
