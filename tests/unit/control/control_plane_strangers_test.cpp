// SPDX-License-Identifier: Apache-2.0
// Those who connect and are no peers, and peers that cannot be connected to.
#include <fcntl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "control/control_connection.h"
#include "control_plane_testing.h"
#include "loop/tcp_listener.h"

namespace braid::testing {
namespace {

// A socket that is no braid: plain bytes to a control plane.
class RawSocket {
 public:
  explicit RawSocket(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const auto address = SocketAddress::parse("127.0.0.1", port);
    is_connected_ = ::connect(fd_.get(), address->get(), sizeof(sockaddr_in)) == 0;
    ::fcntl(fd_.get(), F_SETFL, O_NONBLOCK);
  }
  bool is_connected() const { return is_connected_; }
  void send(const std::vector<uint8_t>& bytes) {
    static_cast<void>(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  // The other side has closed (what it said before is thrown away).
  bool is_closed() {
    char bytes[1024];
    ssize_t count = 0;
    while ((count = ::recv(fd_.get(), bytes, sizeof(bytes), 0)) > 0) {
    }
    return count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }

 private:
  Fd fd_;
  bool is_connected_ = false;
};

class ControlPlaneStrangersTest : public TwoControlPlanesTest {
 protected:
  // What goes on undisturbed meanwhile: a and b are connected, and are so afterwards.
  void SetUp() override {
    a_ = create(options_of_a(), on_a_);
    connect(*a_, b_->self());
  }
  void TearDown() override {
    const size_t before = on_b_.numbers.size();
    send(*a_, *b_, 1);
    ASSERT_TRUE(run_until([&] { return on_b_.numbers.size() > before; }));
    EXPECT_TRUE(on_a_.lost.empty());
    EXPECT_TRUE(on_b_.lost.empty());
    EXPECT_EQ(a_->peers().size(), 1u);
  }
  virtual ControlPlaneOptions options_of_a() { return options("a"); }

  uint64_t refused() const { return a_->counters().connections_refused; }
  // Sends `bytes` and waits until the connection is refused.
  void expect_refused(const std::vector<uint8_t>& bytes) {
    const uint64_t before = refused();
    RawSocket stranger(a_->self().port);
    ASSERT_TRUE(stranger.is_connected());
    stranger.send(bytes);
    ASSERT_TRUE(run_until([&] { return refused() > before && stranger.is_closed(); }));
    EXPECT_EQ(refused(), before + 1);
  }
};

TEST_F(ControlPlaneStrangersTest, RefusesBytesThatAreNoFrames) {
  const std::string http = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  expect_refused({http.begin(), http.end()});
  expect_refused({0, 0, 0, 0});                    // an empty frame
  expect_refused({0x01, 0x10, 0, 0});              // 4097 bytes announced
  expect_refused({0xff, 0xff, 0xff, 0xff, 1, 2});  // 4 GiB announced
  expect_refused({8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_F(ControlPlaneStrangersTest, RefusesMessagesBeforeTheHandshake) {
  auto message = job_ready(1);
  const auto header = control_frame_header(message.GetSize());
  std::vector<uint8_t> bytes(header.size() + message.GetSize());
  std::copy(header.begin(), header.end(), bytes.begin());
  std::copy_n(message.GetBufferPointer(), message.GetSize(), bytes.begin() + header.size());
  expect_refused(bytes);
  EXPECT_TRUE(on_a_.messages.empty());
}

TEST_F(ControlPlaneStrangersTest, CountsThoseWhoLeaveInTheMiddle) {
  const uint64_t before = refused();
  {
    RawSocket stranger(a_->self().port);
    stranger.send({200, 0, 0, 0, 1, 2, 3});
  }
  ASSERT_TRUE(run_until([&] { return refused() == before + 1; }));
}

class ControlPlaneCrowdTest : public ControlPlaneStrangersTest {
 protected:
  static constexpr size_t kPeers = 150;
  ControlPlaneOptions options_of_a() override {
    ControlPlaneOptions roomy = options("a");
    roomy.strangers_max = kPeers;
    roomy.connect_timeout_ms = 60'000;  // they all run here, and the machine may be busy
    return roomy;
  }
};

// As the nodes of a large job do that all begin at the same moment.
TEST_F(ControlPlaneCrowdTest, ManyPeersThatConnectAtOnceAreAllConnected) {
  RecordingHandler handler;
  std::vector<std::unique_ptr<ControlPlane>> peers;
  std::vector<ConnectResult> results(kPeers);
  for (size_t i = 0; i < kPeers; ++i) {
    const std::string address = fmt::format("127.1.0.{}", i + 1);
    ControlPlaneOptions patient = options(fmt::format("peer {}", i), address);
    patient.connect_timeout_ms = 60'000;
    peers.push_back(create(patient, handler));
  }
  for (size_t i = 0; i < kPeers; ++i)
    peers[i]->connect(a_->self().address, a_->self().port, results[i].callback());
  ASSERT_TRUE(run_until([&] {
    return std::all_of(results.begin(), results.end(), [](auto& one) { return one.calls > 0; });
  }));
  const auto failed =
      std::count_if(results.begin(), results.end(), [](auto& one) { return !one.status.is_ok(); });
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(refused(), 0u);
  peers.clear();
  ASSERT_TRUE(run_until([&] { return a_->peers().size() == 1; }));
  on_a_.lost.clear();  // TearDown looks at those that were to stay
}

class ControlPlaneSlowStrangersTest : public ControlPlaneStrangersTest {
  ControlPlaneOptions options_of_a() override {
    ControlPlaneOptions fast = options("a");
    fast.connect_timeout_ms = 200;
    return fast;
  }
};

TEST_F(ControlPlaneSlowStrangersTest, DropsTheSilentAndTheSlow) {
  RawSocket silent(a_->self().port);
  RawSocket slow(a_->self().port);
  slow.send({200, 0, 0, 0, 1});
  ASSERT_TRUE(run_until([&] {
    slow.send({1});
    return refused() == 2 && silent.is_closed() && slow.is_closed();
  }));
}

TEST_F(ControlPlaneStrangersTest, FloodOfSilentConnectionsIsBoundedAndShutsNobodyOut) {
  std::vector<std::unique_ptr<RawSocket>> flood;
  for (int i = 0; i < 500; ++i) {
    flood.push_back(std::make_unique<RawSocket>(a_->self().port));
    ASSERT_TRUE(flood.back()->is_connected());
    if (i % 50 == 0) run_rounds(2);
  }
  ASSERT_TRUE(run_until([&] { return refused() == 500 - options_of_a().strangers_max; }));
  RecordingHandler on_c;
  auto c = create(options("c", "127.0.0.3"), on_c);
  EXPECT_EQ(connect(*c, a_->self()).name, "a");
  const size_t open = static_cast<size_t>(
      std::count_if(flood.begin(), flood.end(), [](auto& one) { return !one->is_closed(); }));
  EXPECT_LE(open, options_of_a().strangers_max);
  EXPECT_GT(open, 0u);
  c.reset();
  ASSERT_TRUE(run_until([&] { return !on_a_.lost.empty(); }));
  on_a_.lost.clear();  // c's orderly leave
}

TEST_F(ControlPlaneStrangersTest, TellsAPeerWithAnotherKey) {
  RecordingHandler on_c;
  ControlPlaneOptions other_key = options("c", "127.0.0.3");
  other_key.cluster_key = {9, 9};
  auto c = create(other_key, on_c);
  const uint64_t before = refused();
  const Status status = connect_error(*c, "127.0.0.1", a_->self().port);
  EXPECT_EQ(status.code(), StatusCode::PermissionDenied);
  EXPECT_TRUE(contains(status.message(), "127.0.0.1:" + std::to_string(a_->self().port)));
  EXPECT_TRUE(contains(status.message(), "cluster key does not match"));
  ASSERT_TRUE(run_until([&] { return refused() == before + 1; }));
}

class ControlPlaneWithoutAKeyTest : public ControlPlaneTest {
 protected:
  static ControlPlaneOptions options_at(const std::string& address) {
    ControlPlaneOptions result = options("c", address);
    result.listen_port = free_port(address);
    result.cluster_key.clear();
    return result;
  }

  RecordingHandler on_c_;
};

TEST_F(ControlPlaneWithoutAKeyTest, NobodyCanConnect) {
  auto c = create(options_at("127.0.0.1"), on_c_);
  ASSERT_NE(c->self().port, 0);
  EXPECT_FALSE(RawSocket(c->self().port).is_connected());
}

TEST_F(ControlPlaneWithoutAKeyTest, NoOtherDaemonIsReachedAndTheErrorSaysWhatIsMissing) {
  RecordingHandler on_a;
  auto a = create(options("a"), on_a);
  auto c = create(options_at("127.0.0.3"), on_c_);
  for (const auto& [host, port] :
       {std::pair<std::string, uint16_t>("192.0.2.1", 7410), {"127.0.0.1", a->self().port}}) {
    const Status status = connect_error(*c, host, port);
    EXPECT_EQ(status.code(), StatusCode::PermissionDenied);
    EXPECT_TRUE(contains(status.message(), host));
    EXPECT_TRUE(contains(status.message(), "set control.cluster_key_file"));
  }
}

TEST_F(ControlPlaneWithoutAKeyTest, EveryAddressOfThisHostIsItsOwn) {
  auto c = create(options_at("127.0.0.1"), on_c_);
  for (const char* host : {"127.0.0.1", "127.0.1.1", "localhost"})
    EXPECT_EQ(connect(*c, {0, "", host, c->self().port}).id, c->self().id) << host;
}

TEST_F(ControlPlaneStrangersTest, SaysWhatIsWrongWithATarget) {
  const Status refused_port = connect_error(*a_, "127.0.0.5", 9);
  EXPECT_EQ(refused_port.code(), StatusCode::Unavailable);
  EXPECT_TRUE(contains(refused_port.message(), "127.0.0.5:9"));
  EXPECT_TRUE(contains(refused_port.message(), "connection refused: is braidd running there"));

  const std::string no_name =
      std::string(64, 'x') + ".invalid";  // too long a label to be asked for
  const Status unresolved = connect_error(*a_, no_name, 7410);
  EXPECT_TRUE(contains(unresolved.message(), no_name));
}

TEST_F(ControlPlaneSlowStrangersTest, GivesUpOnATargetThatSaysNothing) {
  std::vector<std::unique_ptr<TcpStream>> kept;
  auto listener = TcpListener::create(*loop_, *SocketAddress::parse("127.0.0.9", 0), 1 << 20,
                                      [&](Result<std::unique_ptr<TcpStream>> stream) {
                                        kept.push_back(std::move(stream).value());
                                      });
  ASSERT_TRUE(listener.is_ok());
  const Status status = connect_error(*a_, "127.0.0.9", (*listener)->address().port());
  EXPECT_EQ(status.code(), StatusCode::DeadlineExceeded);
  EXPECT_TRUE(contains(status.message(), "did not complete the handshake within"));
}

}  // namespace
}  // namespace braid::testing
