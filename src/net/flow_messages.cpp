// SPDX-License-Identifier: Apache-2.0
#include "net/flow_messages.h"

namespace braid {
namespace {

using AddressVector = flatbuffers::Vector<flatbuffers::Offset<proto::FlowAddress>>;

flatbuffers::Offset<proto::FlowAddress> write_offer(flatbuffers::FlatBufferBuilder& out,
                                                    const FlowOffer& offer) {
  const auto rail = out.CreateString(offer.rail);
  const auto address = out.CreateVector(offer.address);
  return proto::CreateFlowAddress(out, offer.io_loop, offer.flow, offer.generation, rail, address);
}

Result<std::vector<FlowOffer>> read_offers(const AddressVector& addresses) {
  if (addresses.size() > size_t{kFlowsPerLinkMax} * kIoLoopsMax) {
    return make_status(StatusCode::Protocol, "{} flows in one message", addresses.size());
  }
  std::vector<FlowOffer> offers;
  offers.reserve(addresses.size());
  for (const proto::FlowAddress* address : addresses) {
    const auto& bytes = *address->worker_address();
    if (address->flow() >= kFlowsPerLinkMax || address->io_loop() >= kIoLoopsMax ||
        address->generation() == 0 || bytes.size() == 0 || bytes.size() > kWorkerAddressBytesMax) {
      return make_status(
          StatusCode::Protocol,
          "flow {} of I/O loop {}, generation {}, with an address of {} bytes cannot be",
          address->flow(), address->io_loop(), address->generation(), bytes.size());
    }
    offers.push_back({address->io_loop(),
                      address->flow(),
                      address->generation(),
                      address->rail() == nullptr ? "" : address->rail()->str(),
                      {bytes.begin(), bytes.end()}});
  }
  return offers;
}

template <typename Body>
void finish(flatbuffers::FlatBufferBuilder& out, proto::ControlBody type,
            flatbuffers::Offset<Body> body) {
  out.Finish(proto::CreateControlMessage(out, type, body.Union()));
}

}  // namespace

void write_flow_open(flatbuffers::FlatBufferBuilder& out, uint64_t nonce, uint16_t io_loops,
                     uint16_t flows_per_link, uint32_t chunk_bytes, std::string_view transport,
                     std::span<const FlowOffer> offers) {
  std::vector<flatbuffers::Offset<proto::FlowAddress>> addresses;
  addresses.reserve(offers.size());
  for (const auto& offer : offers) addresses.push_back(write_offer(out, offer));
  const auto flows = out.CreateVector(addresses);
  const auto name = out.CreateString(transport);
  finish(out, proto::ControlBody::FlowOpen,
         proto::CreateFlowOpen(out, nonce, flows, io_loops, flows_per_link, chunk_bytes, name));
}

void write_flow_accept(flatbuffers::FlatBufferBuilder& out, const FlowOffer& offer) {
  const auto address = write_offer(out, offer);
  const auto flows = out.CreateVector(&address, 1);
  finish(out, proto::ControlBody::FlowAccept, proto::CreateFlowAccept(out, flows));
}

void write_flow_refuse(flatbuffers::FlatBufferBuilder& out, const FlowRefusal& refusal) {
  const auto reason = out.CreateString(refusal.reason);
  finish(out, proto::ControlBody::FlowRefuse,
         proto::CreateFlowRefuse(out, refusal.io_loop, refusal.flow, refusal.generation, reason));
}

Result<std::vector<FlowOffer>> read_flow_open(const proto::FlowOpen& message) {
  if (message.link_nonce() == 0) return Status(StatusCode::Protocol, "a link without a nonce");
  return read_offers(*message.flows());
}

Result<std::vector<FlowOffer>> read_flow_accept(const proto::FlowAccept& message) {
  return read_offers(*message.flows());
}

FlowRefusal read_flow_refuse(const proto::FlowRefuse& message) {
  return {message.io_loop(), message.flow(), message.generation(), message.reason()->str()};
}

}  // namespace braid
