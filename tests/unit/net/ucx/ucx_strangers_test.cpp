// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include <sys/socket.h>

#include "base/fd.h"
#include "net/transport_testing.h"
#include "net/ucx/ucx_endpoint.h"
#include "net/ucx/ucx_worker.h"

namespace braid::testing {
namespace {

TransportOptions ucx_options() {
  auto options = TwoNodes::default_options();
  options.tcp = TcpTransport::Ucx;
  return options;
}

// One end of a flow that waits for the other.
struct WaitingFlow {
  std::vector<uint8_t> worker_address;
  Sha256Digest proof_key{};
};

// Someone who knows the address of a flow's worker, and speaks UCX. Only the flow's key lets him
// in; then it is his messages that are looked at.
class Stranger final : public UcxEndpointHandler {
 public:
  explicit Stranger(const WaitingFlow& flow) {
    auto context = UcxContext::create({"lo", {"tcp"}, 64 << 10});
    worker_ = std::move(UcxWorker::create(context.value(), flow.proof_key, refused_)).value();
    endpoint_ = std::move(UcxEndpoint::create(*worker_, flow.worker_address)).value();
    endpoint_->set_handler(*this);
  }
  ~Stranger() override {
    endpoint_.reset();
    worker_.reset();
  }
  void send(unsigned id, std::span<const uint8_t> header, std::span<const uint8_t> payload) {
    endpoint_->send(id, header, payload, 0);
  }
  void progress() { worker_->progress(); }
  bool has_failed() const { return has_failed_; }
  void on_endpoint_error(const Status&) override { has_failed_ = true; }
  void on_send_done(uint64_t, const Status&) override {}

 private:
  std::atomic<uint64_t> refused_ = 0;
  std::unique_ptr<UcxWorker> worker_;
  std::unique_ptr<UcxEndpoint> endpoint_;
  bool has_failed_ = false;
};

// The latest message of that kind that `node` has sent.
template <typename Body>
const Body* last_sent(const FakeNode& node) {
  const Body* found = nullptr;
  for (const auto& bytes : node.control.sent) {
    const auto* body = proto::GetControlMessage(bytes.data())->body_as<Body>();
    if (body != nullptr) found = body;
  }
  return found;
}

// `end`: as its node has told it, of a link that a opens.
WaitingFlow waiting_end(const TwoNodes& nodes, const proto::FlowAddress& end) {
  WaitingFlow flow;
  flow.worker_address.assign(end.worker_address()->begin(), end.worker_address()->end());
  const auto* open = last_sent<proto::FlowOpen>(*nodes.a);
  const LinkKey link = nodes.a->control.link_key(nodes.a->id(), nodes.b->id(), open->link_nonce());
  flow.proof_key = FlowKeys(link, end.io_loop(), end.flow(), end.generation()).proof_key;
  return flow;
}

// Lets b wait for a on a flow, of which a is never told.
WaitingFlow waiting_flow(TwoNodes& nodes) {
  nodes.b->control.is_silent = true;
  nodes.a->transport().open_link(nodes.b->id(), [](const Status&) {});
  EXPECT_TRUE(nodes.run_until([&] { return last_sent<proto::FlowAccept>(*nodes.b) != nullptr; }));
  return waiting_end(nodes, *last_sent<proto::FlowAccept>(*nodes.b)->flows()->Get(0));
}

void start_anew(TwoNodes& nodes) {
  nodes.a->transport().on_peer_lost(nodes.b->id());
  nodes.b->transport().on_peer_lost(nodes.a->id());
  nodes.b->control.is_silent = false;
  ASSERT_TRUE(nodes.open());
}

proto::ChunkHeader forged_header(uint32_t bytes) {
  proto::ChunkHeader header{};
  header.magic = proto::kChunkMagic;
  header.version = proto::kChunkVersion;
  header.phase = static_cast<uint8_t>(proto::Phase::ReduceScatter);
  header.flow_token = 12345;
  header.bytes = bytes;
  header.sequence = 1;
  return header;
}

std::span<const uint8_t> bytes_of(const proto::ChunkHeader& header) {
  return {reinterpret_cast<const uint8_t*>(&header), sizeof(header)};
}

void expect_link_works(TwoNodes& nodes, uint64_t first) {
  const auto source = std::make_shared<RecordingSource>(8192);
  nodes.b->sink.arrived.clear();
  nodes.submit(source, first, 100);
  ASSERT_TRUE(nodes.settles(*source, 100));
  EXPECT_EQ(nodes.b->sink.arrived.size(), 100u);
}

TEST(UcxStrangers, AChunkWithAWrongTokenIsDroppedAndCounted) {
  TwoNodes nodes(ucx_options());
  Stranger stranger(waiting_flow(nodes));
  const std::vector<uint8_t> payload(100, 1);
  const auto header = forged_header(100);
  stranger.send(proto::kChunkMessage, bytes_of(header), payload);
  stranger.send(proto::kChunkMessage, bytes_of(header).first(30), payload);  // no header
  ASSERT_TRUE(nodes.run_until([&] {
    stranger.progress();
    return nodes.b->transport().counters().chunks_rejected == 2;
  }));
  EXPECT_TRUE(nodes.b->sink.arrived.empty());
  start_anew(nodes);
  expect_link_works(nodes, 0);
}

// Connects to whatever `listener` listens on; the socket does not block.
Fd connect_to(int listener) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  EXPECT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  Fd stranger(::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0));
  ::connect(stranger.get(), reinterpret_cast<sockaddr*>(&address), bytes);
  return stranger;
}

bool is_connected(const Fd& socket) {
  sockaddr_storage peer{};
  socklen_t bytes = sizeof(peer);
  return ::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&peer), &bytes) == 0;
}

// A flow is opened again on a link whose chunks somebody has heard.
TEST(UcxStrangers, WhoHasHeardAChunkProvesNothingWithItsToken) {
  auto options = ucx_options();
  options.open_timeout_ms = 120'000;
  OpenNodes nodes(options);
  expect_link_works(nodes, 0);
  const std::set<uint64_t> tokens = nodes.b->sink.tokens;
  ASSERT_FALSE(tokens.empty());
  nodes.a->control.sent.clear();
  nodes.a->control.is_silent = true;  // b never connects, so the port waits for anybody
  ::shutdown(connected_sockets().front(), SHUT_RDWR);
  ASSERT_TRUE(nodes.run_until([&] { return last_sent<proto::FlowOpen>(*nodes.a) != nullptr; }));
  WaitingFlow flow = waiting_end(nodes, *last_sent<proto::FlowOpen>(*nodes.a)->flows()->Get(0));
  const auto header = forged_header(0);
  uint64_t refused = 0;
  for (const uint64_t token : tokens) {
    flow.proof_key.fill(0);  // as HMAC fills a shorter key
    std::memcpy(flow.proof_key.data(), &token, sizeof(token));
    Stranger stranger(flow);
    stranger.send(proto::kChunkMessage, bytes_of(header), {});
    ++refused;
    ASSERT_TRUE(nodes.run_until([&] {
      stranger.progress();
      return nodes.a->transport().counters().strangers >= refused && stranger.has_failed();
    }));
  }
}

TEST(UcxStrangers, TokensOfChunksAreNewWithEachGenerationOfAFlow) {
  OpenNodes nodes(ucx_options());
  expect_link_works(nodes, 0);
  const std::set<uint64_t> before = std::exchange(nodes.b->sink.tokens, {});
  shut_all_connections();
  ASSERT_TRUE(nodes.run_until([&] {
    return nodes.a->transport().counters().flow_failures >= 4 && open_flows(nodes) == 4;
  }));
  expect_link_works(nodes, 100);
  ASSERT_FALSE(nodes.b->sink.tokens.empty());
  for (const uint64_t token : nodes.b->sink.tokens) EXPECT_FALSE(before.contains(token));
}

// What a stranger says to UCX's TCP transport: its magic number, then one message.
template <typename Body>
std::vector<uint8_t> spoken_to_ucx(uint8_t id, uint32_t announced_bytes, const Body& body) {
  std::vector<uint8_t> bytes;
  const auto append = [&](const auto& value) {
    const auto* begin = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), begin, begin + sizeof(value));
  };
  append(uint64_t{0xCAFEBABE12345678});
  append(id);
  append(announced_bytes);
  append(body);
  return bytes;
}

// "Write this at that address": UCX does as it is told (all versions up to 1.22 at least).
struct [[gnu::packed]] PutRequest {
  uint64_t address;
  uint64_t bytes;
  uint32_t number;
  uint64_t data;
};
constexpr uint8_t kPutRequest = 33;
constexpr uint32_t kPutHeaderBytes = 20;

void say(const std::vector<Fd>& strangers, const std::vector<uint8_t>& words) {
  for (const Fd& stranger : strangers)
    ::send(stranger.get(), words.data(), words.size(), MSG_NOSIGNAL);
}

TEST(UcxStrangers, WhoConnectsWhileFlowsAreOpenedWritesNothingIntoOurMemory) {
  static uint64_t treasure;
  treasure = 1;
  const auto words = spoken_to_ucx(kPutRequest, kPutHeaderBytes,
                                   PutRequest{reinterpret_cast<uint64_t>(&treasure), 8, 1, 666});
  TwoNodes nodes(ucx_options());
  std::optional<Status> outcome;
  nodes.a->transport().open_link(nodes.b->id(), [&](Status status) { outcome = status; });
  ASSERT_TRUE(nodes.run_until([&] { return listening_sockets().size() == 8; }));
  std::vector<Fd> hasty;
  std::vector<Fd> patient;
  for (const int port : listening_sockets()) {
    hasty.push_back(connect_to(port));
    patient.push_back(connect_to(port));
  }
  say(hasty, words);
  ASSERT_TRUE(nodes.run_until([&] { return outcome.has_value(); }));
  EXPECT_TRUE(*outcome) << outcome->message();
  say(patient, words);
  expect_link_works(nodes, 0);
  for (int i = 0; i < 100; ++i) nodes.step();
  EXPECT_EQ(treasure, 1u);
}

TEST(UcxStrangers, NobodyCanConnectToThePortsOfOpenFlows) {
  OpenNodes nodes(ucx_options());
  const auto ports = listening_sockets();
  ASSERT_EQ(ports.size(), 8u) << "four flows, both ends";
  for (const int port : ports) {
    const Fd stranger = connect_to(port);
    for (int i = 0; i < 10; ++i) nodes.step();
    EXPECT_FALSE(is_connected(stranger));
  }
  expect_link_works(nodes, 0);
}

}  // namespace
}  // namespace braid::testing
