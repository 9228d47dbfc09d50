// SPDX-License-Identifier: Apache-2.0
#include "transport_testing.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <linux/filter.h>
#include <sys/socket.h>

namespace braid::testing {

OutgoingChunk RecordingSource::chunk(const std::shared_ptr<RecordingSource>& source,
                                     uint64_t number) {
  OutgoingChunk made;
  made.header.magic = proto::kChunkMagic;
  made.header.version = proto::kChunkVersion;
  made.header.phase = static_cast<uint8_t>(proto::Phase::AllGather);
  made.header.ack_time = static_cast<uint8_t>(source->ack_time);
  made.header.job_key = source->job_key;
  made.header.step = number;
  made.header.bytes = static_cast<uint32_t>(source->chunk_bytes_);
  made.source = source;
  return made;
}

std::span<const uint8_t> RecordingSource::payload_of(const OutgoingChunk& chunk) {
  if (is_over) return {};
  ++given;
  auto& bytes = bytes_[chunk.header.step];
  bytes.resize(chunk_bytes_);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_of(chunk.header.step, i);
  return bytes;
}

void RecordingSource::on_chunk_settled(const OutgoingChunk& chunk, bool acknowledged) {
  ++(acknowledged ? settled : not_settled)[chunk.header.step];
  bytes_.erase(chunk.header.step);  // a sanitizer sees it if anything reads them later
  if (on_settled) on_settled();
}

void RecordingSink::on_chunk(NodeId from, const proto::ChunkHeader& header,
                             std::span<const uint8_t> payload) {
  if (forward_to != nullptr) return forward_to->on_chunk(from, header, payload);
  last_from = from;
  ++arrived[header.step];
  ack_times[header.step] = header.ack_time;
  tokens.insert(header.flow_token);
  for (size_t i = 0; i < payload.size(); ++i) {
    if (payload[i] != RecordingSource::byte_of(header.step, i)) {
      ++corrupt;
      break;
    }
  }
  if (on_arrived) on_arrived();
}

const Peer* DeliveringControlPlane::find(NodeId id) const {
  return other_ != nullptr && other_->id == id ? other_ : nullptr;
}

Status DeliveringControlPlane::send(NodeId to, flatbuffers::FlatBufferBuilder& message) {
  if (find(to) == nullptr) return {StatusCode::Unavailable, "not connected"};
  sent.emplace_back(message.GetBufferPointer(), message.GetBufferPointer() + message.GetSize());
  if (is_silent) return Status::ok();
  loop_.defer([this, bytes = sent.back()] {
    EXPECT_TRUE(receiver_->on_control_message(self_, *proto::GetControlMessage(bytes.data())));
  });
  return Status::ok();
}

FakeNode::FakeNode(Loop& control_loop, NodeId id, const TransportOptions& options)
    : io_loop(std::move(Loop::create("io " + std::to_string(id))).value()),
      control(control_loop, {id, "node" + std::to_string(id), "127.0.0.1", 7410}) {
  auto made = Transport::create(control_loop, {{io_loop.get(), &sink}}, options, control);
  transport_ = std::move(made).value();
}

FakeNode::~FakeNode() = default;

TransportOptions TwoNodes::default_options() {
  TransportOptions options;
  options.rails = {"lo"};
  options.transports = {"tcp"};
  const char* const tcp = std::getenv("BRAID_TEST_TCP");  // see CMakeLists.txt
  if (tcp != nullptr && tcp == std::string_view("ucx")) options.tcp = TcpTransport::Ucx;
  if (tcp != nullptr && tcp == std::string_view("encrypted")) options.encrypts = true;
  options.flows_per_link = 4;
  options.chunk_bytes = 64 << 10;
  options.window_bytes = 256 << 10;
  options.twice_sent_percent = 0;  // a test that stands still for a moment sees no second copies
  return options;
}

TwoNodes::TwoNodes(const TransportOptions& options_a, const TransportOptions& options_b)
    : control_loop(std::move(Loop::create("control")).value()),
      a(std::make_unique<FakeNode>(*control_loop, 1, options_a)),
      b(std::make_unique<FakeNode>(*control_loop, 2, options_b)) {
  a->control.connect_to(b->control.self(), b->transport());
  b->control.connect_to(a->control.self(), a->transport());
}

TwoNodes::~TwoNodes() {
  b_stands_still = false;
  int closed = 0;
  for (FakeNode* node : {a.get(), b.get()}) node->transport().close([&] { ++closed; });
  EXPECT_TRUE(run_until([&] { return closed == 2; }));
}

void TwoNodes::step() {
  uv_run(control_loop->uv(), UV_RUN_NOWAIT);
  uv_run(a->io_loop->uv(), UV_RUN_NOWAIT);
  if (!b_stands_still) uv_run(b->io_loop->uv(), UV_RUN_NOWAIT);
}

bool TwoNodes::run_until(const std::function<bool()>& condition) {
  const SystemClock clock;
  const uint64_t deadline_ms = clock.now_ms() + 120'000;
  while (!condition()) {
    if (clock.now_ms() > deadline_ms) return false;
    step();
  }
  return true;
}

Status TwoNodes::open() { return open(*a, *b); }

Status TwoNodes::open(FakeNode& from, FakeNode& to) {
  std::optional<Status> outcome;
  from.transport().open_link(to.id(), [&](Status status) {
    EXPECT_FALSE(outcome.has_value()) << "the callback comes once";
    outcome = std::move(status);
  });
  EXPECT_FALSE(outcome.has_value()) << "the callback comes later";
  if (!run_until([&] { return outcome.has_value(); })) return {StatusCode::Internal, "no callback"};
  return *outcome;
}

bool TwoNodes::open_eventually() {
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (open().is_ok()) return true;
  }
  return false;
}

std::vector<FlowStatus> TwoNodes::flows(FakeNode& node) {
  std::optional<std::vector<FlowStatus>> answer;
  node.transport().query_flows([&](std::vector<FlowStatus> listed) { answer = std::move(listed); });
  EXPECT_TRUE(run_until([&] { return answer.has_value(); }));
  return answer.value_or(std::vector<FlowStatus>{});
}

void TwoNodes::submit(const std::shared_ptr<RecordingSource>& source, uint64_t first,
                      uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    a->link_to(*b)->submit(RecordingSource::chunk(source, first + i));
  }
}

std::shared_ptr<RecordingSource> TwoNodes::submit(size_t chunk_bytes, uint64_t count) {
  auto source = std::make_shared<RecordingSource>(chunk_bytes);
  submit(source, 0, count);
  return source;
}

bool TwoNodes::settles(const RecordingSource& source, uint64_t count) {
  return run_until([&] { return source.settled.size() == count; });
}

void TwoNodes::expect_delivered(const RecordingSource& source, uint64_t count) {
  ASSERT_TRUE(settles(source, count));
  EXPECT_TRUE(each_exactly(source.settled, count, 1));
  EXPECT_TRUE(source.not_settled.empty());
  EXPECT_EQ(b->sink.arrived.size(), count);
  EXPECT_EQ(b->sink.arrived.rbegin()->first, count - 1);
  EXPECT_EQ(b->sink.corrupt, 0u);
}

void TwoNodes::expect_delivered_once(const RecordingSource& source, uint64_t count) {
  expect_delivered(source, count);
  EXPECT_TRUE(each_exactly(b->sink.arrived, count, 1));
}

namespace {

std::vector<int> tcp_sockets(bool listening) {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    int type = 0;
    int accepts = 0;
    socklen_t bytes = sizeof(type);
    if (::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &type, &bytes) != 0 || type != IPPROTO_TCP)
      continue;
    bytes = sizeof(accepts);
    ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &bytes);
    sockaddr_storage peer{};
    bytes = sizeof(peer);
    const bool is_connected = ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes) == 0;
    if (listening ? accepts != 0 : is_connected) found.push_back(fd);
  }
  return found;
}

}  // namespace

std::vector<int> connected_sockets() { return tcp_sockets(false); }
std::vector<int> listening_sockets() { return tcp_sockets(true); }

std::vector<Connection> connections() {
  std::vector<Connection> found;
  const auto port_of = [](int socket, auto get_address) {
    sockaddr_in address{};
    socklen_t bytes = sizeof(address);
    get_address(socket, reinterpret_cast<sockaddr*>(&address), &bytes);
    return address.sin_port;
  };
  const auto sockets = connected_sockets();
  for (size_t i = 0; i < sockets.size(); ++i) {
    for (size_t k = i + 1; k < sockets.size(); ++k) {
      if (port_of(sockets[i], ::getsockname) == port_of(sockets[k], ::getpeername) &&
          port_of(sockets[i], ::getpeername) == port_of(sockets[k], ::getsockname)) {
        found.push_back({sockets[i], sockets[k]});
      }
    }
  }
  return found;
}

void drop_what_arrives(int socket) {
  sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{1, &drop_all};
  EXPECT_EQ(::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0);
}

void drop_both_ways(const Connection& connection) {
  drop_what_arrives(connection.one_end);
  drop_what_arrives(connection.other_end);
}

void shut_all_connections() {
  for (const int socket : connected_sockets()) ::shutdown(socket, SHUT_RDWR);
}

bool each_exactly(const std::map<uint64_t, int>& times, uint64_t count, int n) {
  if (times.size() != count) return false;
  return std::all_of(times.begin(), times.end(),
                     [&](const auto& entry) { return entry.first < count && entry.second == n; });
}

uint64_t open_flows(TwoNodes& nodes) { return nodes.a->transport().counters().flows_open; }

}  // namespace braid::testing
