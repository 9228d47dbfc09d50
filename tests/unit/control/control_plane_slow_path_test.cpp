// SPDX-License-Identifier: Apache-2.0
// Control planes whose network works and is slow.
#include <list>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "control/control_connection.h"
#include "control_plane_testing.h"
#include "loop/tcp_listener.h"

namespace braid::testing {
namespace {

// A path that carries so many bytes per tick each way, all its connections together. It connects
// its callers with `target`. Small receive buffers: what waits, waits at the sender.
class SlowPath {
 public:
  static constexpr int kTickMs = 5;
  static constexpr size_t kBytesPerTick = 5'000;

  SlowPath(Loop& loop, const std::string& address)
      : listener_(new_socket()), address_(*SocketAddress::parse(address, 0)), timer_(loop) {
    EXPECT_EQ(::bind(listener_.get(), address_.get(), sizeof(sockaddr_in)), 0);
    EXPECT_EQ(::listen(listener_.get(), 64), 0);
    sockaddr_storage bound{};
    socklen_t bytes = sizeof(bound);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&bound), &bytes), 0);
    address_ = *SocketAddress::from(reinterpret_cast<const sockaddr*>(&bound));
    timer_.start_repeating(kTickMs, [this] { tick(); });
  }
  uint16_t port() const { return address_.port(); }
  void set_target(const SocketAddress& target) { target_ = target; }
  size_t connections() const { return connections_; }  // so far

 private:
  static constexpr int kReceiveBufferBytes = 32 << 10;

  struct Line {
    Fd from, to;
    std::vector<uint8_t> there, back;  // read, and not yet written
    bool is_open = true;
  };

  static Fd new_socket() {
    Fd result(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ::setsockopt(result.get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBufferBytes,
                 sizeof(kReceiveBufferBytes));
    return result;
  }
  void tick() {
    for (;;) {
      pollfd waiting{listener_.get(), POLLIN, 0};
      if (::poll(&waiting, 1, 0) != 1) break;
      Fd from(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      Fd to = new_socket();
      ASSERT_EQ(::connect(to.get(), target_->get(), sizeof(sockaddr_in)), 0);
      lines_.push_back({std::move(from), std::move(to), {}, {}});
      ++connections_;
    }
    if (lines_.empty()) return;
    const size_t share = kBytesPerTick / lines_.size();
    for (Line& line : lines_) {
      const bool is_open = pass(line.from.get(), line.to.get(), line.there, share) &&
                           pass(line.to.get(), line.from.get(), line.back, share);
      line.is_open = line.is_open && is_open;
    }
    lines_.remove_if([](const Line& line) { return !line.is_open; });
  }
  static bool pass(int from, int to, std::vector<uint8_t>& waiting, size_t bytes_max) {
    if (waiting.empty()) {
      waiting.resize(bytes_max);
      const ssize_t count = ::recv(from, waiting.data(), bytes_max, MSG_DONTWAIT);
      waiting.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
      if (count == 0 || (count < 0 && errno != EAGAIN)) return false;
    }
    if (waiting.empty()) return true;
    const ssize_t count = ::send(to, waiting.data(), waiting.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN;
    waiting.erase(waiting.begin(), waiting.begin() + count);
    return true;
  }

  Fd listener_;
  SocketAddress address_;
  std::optional<SocketAddress> target_;
  std::list<Line> lines_;
  size_t connections_ = 0;
  Timer timer_;
};

class ControlPlaneSlowPathTest : public ControlPlaneTest {
 protected:
  // A plane that others know by the address of `path`, which leads to it.
  std::unique_ptr<ControlPlane> create_behind(SlowPath& path, const std::string& name,
                                              const std::string& advertised,
                                              const std::string& listen,
                                              RecordingHandler& handler) {
    ControlPlaneOptions with = options(name, advertised);
    with.heartbeat_interval_ms = 200;
    with.peer_timeout_ms = 60'000;
    with.connect_timeout_ms = 60'000;
    with.self.port = path.port();
    with.listen_address = listen;
    with.listen_port = free_port(listen);
    path.set_target(*SocketAddress::parse(listen, with.listen_port));
    return create(std::move(with), handler);
  }
};

flatbuffers::FlatBufferBuilder long_message(size_t bytes) {
  flatbuffers::FlatBufferBuilder builder;
  const std::string text(bytes, 'x');
  builder.Finish(proto::CreateControlMessage(
      builder, proto::ControlBody::JobFailed,
      proto::CreateJobFailedDirect(builder, 1, text.c_str(), 0, "").Union()));
  return builder;
}

// The sender's kernel holds all of it, for seconds; heartbeats wait behind it.
TEST_F(ControlPlaneSlowPathTest, ALongMessageIsNoSilence) {
  SlowPath to_a(*loop_, "127.0.0.11");
  SlowPath to_b(*loop_, "127.0.0.12");
  RecordingHandler on_a;
  RecordingHandler on_b;
  auto a = create_behind(to_a, "a", "127.0.0.11", "127.0.0.1", on_a);
  auto b = create_behind(to_b, "b", "127.0.0.12", "127.0.0.2", on_b);
  connect(*a, b->self());
  auto message = long_message(2'500'000);
  ASSERT_TRUE(a->send(b->self().id, message).is_ok());
  ASSERT_TRUE(run_until([&] { return !on_b.messages.empty(); }));
  EXPECT_EQ(to_a.connections() + to_b.connections(), 1u) << "it was begun again";
  EXPECT_EQ(a->counters().reconnects + b->counters().reconnects, 0u);
  EXPECT_TRUE(on_a.lost.empty() && on_b.lost.empty());
}

// Hears each heartbeat later than the one before.
struct LatePeer final : QuietOwner {
  void on_message(ControlConnection& connection, const FrameNumbers&,
                  const proto::ControlMessage& message, size_t) override {
    const auto* theirs = message.body_as_Heartbeat();
    if (theirs == nullptr) return;
    if (heard++ == 0) first_ms_ = theirs->sent_ms();
    const uint64_t answered_ms = first_ms_ + (theirs->sent_ms() - first_ms_) / 2;
    const auto builder = heartbeat(heard, answered_ms);
    (void)connection.send({}, {builder.GetBufferPointer(), builder.GetSize()});
  }

  size_t heard = 0;
  uint64_t first_ms_ = 0;
};

TEST_F(ControlPlaneSlowPathTest, AnswersThatAreLateAndGoOnAreNoSilence) {
  size_t attempts = 0;
  auto listener = TcpListener::create(*loop_, *SocketAddress::parse("127.0.0.2", 0), 1,
                                      [&](Result<std::unique_ptr<TcpStream>>) { ++attempts; });
  RecordingHandler on_a;
  ControlPlaneOptions with = options("a");
  with.heartbeat_interval_ms = 50;
  with.peer_timeout_ms = 60'000;
  auto a = create(with, on_a);
  HandshakeOptions as;
  as.node_key = std::make_shared<const NodeKey>();
  as.generation = [](NodeId) { return 0; };
  as.self = Peer{as.node_key->id(), "b", "127.0.0.2", (*listener)->address().port()};
  as.cluster_key = with.cluster_key;
  LatePeer late;
  const auto connection = ControlConnection::connect(
      *loop_, *SocketAddress::parse("127.0.0.1", a->self().port), as, 5000, late);
  ASSERT_TRUE(run_until([&] { return late.heard > 30; }));
  EXPECT_EQ(attempts, 0u);
  EXPECT_EQ(late.broken, "");
  EXPECT_TRUE(on_a.messages.empty()) << "heartbeats are nobody else\'s business";
  EXPECT_TRUE(on_a.lost.empty());
}

}  // namespace
}  // namespace braid::testing
