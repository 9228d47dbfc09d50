// SPDX-License-Identifier: Apache-2.0
// Control planes whose network breaks, falls silent or changes bytes, and comes back.
#include <list>

#include "control_plane_testing.h"
#include "loop/tcp_listener.h"
#include "loop/tcp_stream.h"

namespace braid::testing {
namespace {

// The network between two control planes: it connects its callers with `target`.
class Proxy {
 public:
  enum class Mode : uint8_t { Carries, Silent };

  Proxy(Loop& loop, const std::string& address) : loop_(loop) {
    auto listener = TcpListener::create(
        loop, *SocketAddress::parse(address, 0), kQueueBytesMax,
        [this](Result<std::unique_ptr<TcpStream>> stream) { add(std::move(stream).value()); });
    listener_ = std::move(listener).value();
  }
  uint16_t port() const { return listener_->address().port(); }
  void set_target(const SocketAddress& target) { target_ = target; }
  // Silent: bytes vanish, as does who connects meanwhile; nothing is closed.
  void set_mode(Mode mode) { mode_ = mode; }
  // Both sides see the end.
  void break_all() { lines_.clear(); }
  // The next bytes that are longer than that are changed on their way.
  void change_one_longer_than(size_t bytes) { change_longer_than_ = bytes; }
  size_t taken() const { return taken_; }

 private:
  static constexpr size_t kQueueBytesMax = 64u << 20;

  struct Line;
  struct End final : TcpStream::Handler {
    End(Proxy& proxy, Line& line) : proxy_(proxy), line_(line) {}
    void on_connected() override {}
    void on_bytes(std::span<const uint8_t> bytes) override { proxy_.carry(*this, bytes); }
    void on_end(const Status&) override { proxy_.end(line_); }
    Proxy& proxy_;
    Line& line_;
    std::unique_ptr<TcpStream> stream;
    End* other = nullptr;
  };
  struct Line {
    explicit Line(Proxy& proxy) : from(proxy, *this), to(proxy, *this) {
      from.other = &to;
      to.other = &from;
    }
    End from, to;
    std::weak_ptr<Line> self;
    bool is_dead = false;  // was used while the network was silent: the rest makes no sense
  };

  void add(std::unique_ptr<TcpStream> stream) {
    ++taken_;
    const auto made = std::make_shared<Line>(*this);
    made->self = made;
    lines_.push_back(made);
    Line& line = *made;
    line.from.stream = std::move(stream);
    line.to.stream = std::make_unique<TcpStream>(loop_, kQueueBytesMax);
    line.is_dead = mode_ == Mode::Silent;
    line.from.stream->start(line.from);
    line.to.stream->connect(*target_, line.to);
  }
  void carry(End& from, std::span<const uint8_t> bytes) {
    if (mode_ != Mode::Carries) from.line_.is_dead = true;
    if (from.line_.is_dead) return;
    std::vector<uint8_t> copy(bytes.begin(), bytes.end());
    if (copy.size() > change_longer_than_) {
      copy[copy.size() / 2] ^= 1;
      change_longer_than_ = SIZE_MAX;
    }
    ASSERT_TRUE(from.other->stream->write({copy}).is_ok());
  }
  void end(Line& line) {
    if (mode_ == Mode::Silent) return;
    loop_.defer([ended = line.self, this] {
      const auto gone = ended.lock();
      if (gone != nullptr) lines_.remove(gone);
    });
  }

  Loop& loop_;
  std::unique_ptr<TcpListener> listener_;
  std::optional<SocketAddress> target_;
  Mode mode_ = Mode::Carries;
  size_t change_longer_than_ = SIZE_MAX;
  size_t taken_ = 0;
  std::list<std::shared_ptr<Line>> lines_;
};

// a and b know each other under the addresses of a proxy each.
class ControlPlaneOutageTest : public ControlPlaneTest {
 protected:
  ControlPlaneOutageTest() : to_a_(*loop_, "127.0.0.11"), to_b_(*loop_, "127.0.0.12") {
    a_ = create(plane_behind("a", "127.0.0.11", to_a_, "127.0.0.1"), on_a_);
    b_ = create(plane_behind("b", "127.0.0.12", to_b_, "127.0.0.2"), on_b_);
    to_a_.set_target(*SocketAddress::parse("127.0.0.1", port_of_a_));
    to_b_.set_target(*SocketAddress::parse("127.0.0.2", port_of_b_));
    connect(*a_, b_->self());
    EXPECT_TRUE(run_until([&] { return b_->find(a_->self().id) != nullptr; }));
  }

  // A port of its own to listen at, and the proxy's to be known by.
  ControlPlaneOptions plane_behind(const std::string& name, const std::string& advertised,
                                   const Proxy& proxy, const std::string& listen) {
    ControlPlaneOptions result = options(name, advertised);
    result.heartbeat_interval_ms = 20;
    result.peer_timeout_ms = 60'000;
    result.self.port = proxy.port();
    result.listen_address = listen;
    result.listen_port = free_port(listen);
    (name == "a" ? port_of_a_ : port_of_b_) = result.listen_port;
    return result;
  }
  void set_mode(Proxy::Mode mode) {
    to_a_.set_mode(mode);
    to_b_.set_mode(mode);
  }
  void break_all() {
    to_a_.break_all();
    to_b_.break_all();
  }
  void send_both_ways(uint64_t messages) {
    for (uint64_t i = 0; i < messages; ++i, ++sent_) {
      send(*a_, *b_, sent_);
      send(*b_, *a_, sent_);
    }
  }
  void expect_all_once_and_in_order() {
    ASSERT_TRUE(
        run_until([&] { return on_a_.numbers.size() >= sent_ && on_b_.numbers.size() >= sent_; }));
    run_rounds();
    ASSERT_EQ(on_a_.numbers.size(), sent_);
    ASSERT_EQ(on_b_.numbers.size(), sent_);
    for (uint64_t i = 0; i < sent_; ++i) {
      ASSERT_EQ(on_a_.numbers[i].second, i);
      ASSERT_EQ(on_b_.numbers[i].second, i);
    }
    EXPECT_TRUE(on_a_.lost.empty()) << on_a_.lost[0].second;
    EXPECT_TRUE(on_b_.lost.empty()) << on_b_.lost[0].second;
  }
  uint64_t reconnects() const { return a_->counters().reconnects + b_->counters().reconnects; }

  Proxy to_a_;
  Proxy to_b_;
  uint16_t port_of_a_ = 0;
  uint16_t port_of_b_ = 0;
  RecordingHandler on_a_;
  RecordingHandler on_b_;
  std::unique_ptr<ControlPlane> a_;
  std::unique_ptr<ControlPlane> b_;
  uint64_t sent_ = 0;
};

TEST_F(ControlPlaneOutageTest, AConnectionThatBreaksIsNoLostPeer) {
  for (int round = 0; round < 20; ++round) {
    send_both_ways(50);
    if (round % 2 == 0) run_rounds(1 + round % 5);
    break_all();
    send_both_ways(50);
    const uint64_t before = reconnects();
    ASSERT_TRUE(run_until([&] { return reconnects() > before; }));
  }
  expect_all_once_and_in_order();
}

TEST_F(ControlPlaneOutageTest, ASilentConnectionIsReplacedAndNothingIsLost) {
  for (int round = 0; round < 3; ++round) {
    send_both_ways(10);
    set_mode(Proxy::Mode::Silent);
    send_both_ways(10);
    const size_t before = to_a_.taken() + to_b_.taken();
    ASSERT_TRUE(run_until([&] { return to_a_.taken() + to_b_.taken() > before; }));
    set_mode(Proxy::Mode::Carries);
    expect_all_once_and_in_order();
  }
  EXPECT_GE(reconnects(), 3u);
}

TEST_F(ControlPlaneOutageTest, AChangedFrameEndsItsConnectionAndIsSentAgain) {
  to_b_.change_one_longer_than(1000);
  send_both_ways(100);
  expect_all_once_and_in_order();
  EXPECT_EQ(a_->counters().frames_refused + b_->counters().frames_refused, 1u);
}

TEST_F(ControlPlaneOutageTest, APeerThatWasStartedAnewIsLostAndTheNewOneIsMet) {
  set_mode(Proxy::Mode::Silent);
  b_.reset();
  RecordingHandler on_new;
  ControlPlaneOptions anew = options("b", "127.0.0.12");
  anew.self.port = to_b_.port();
  anew.listen_address = "127.0.0.2";
  anew.listen_port = port_of_b_;
  auto again = create(anew, on_new);
  set_mode(Proxy::Mode::Carries);
  break_all();
  ASSERT_TRUE(run_until([&] { return !on_a_.lost.empty() && a_->peer_count() == 1; }));
  EXPECT_TRUE(contains(on_a_.lost[0].second, "has ended"));
  EXPECT_TRUE(contains(on_a_.lost[0].second, "another process, is at its address now"));
  EXPECT_EQ(a_->peers()[0].id, again->self().id);
}

TEST_F(ControlPlaneTest, APeerThatNobodyListensForAnyMoreHasEnded) {
  RecordingHandler on_a;
  RecordingHandler on_b;
  Proxy to_b(*loop_, "127.0.0.12");
  auto a = create(options("a"), on_a);
  ControlPlaneOptions behind = options("b", "127.0.0.2");
  auto b = create(behind, on_b);
  // b has never been connected to by a, and is reached at the address that it gives.
  to_b.set_target(*SocketAddress::parse("127.0.0.1", a->self().port));
  ConnectResult result;
  b->connect("127.0.0.12", to_b.port(), result.callback());
  ASSERT_TRUE(run_until([&] { return result.calls > 0 && !a->peers().empty(); }));
  // Its farewell does not arrive, as if it had been killed.
  to_b.set_mode(Proxy::Mode::Silent);
  b.reset();
  run_rounds();
  to_b.set_mode(Proxy::Mode::Carries);
  to_b.break_all();
  ASSERT_TRUE(run_until([&] { return !on_a.lost.empty(); }));
  EXPECT_TRUE(contains(on_a.lost[0].second, "has ended: its control connection broke ("));
  EXPECT_TRUE(contains(on_a.lost[0].second, "and nobody listens at 127.0.0.2:"));
}

}  // namespace
}  // namespace braid::testing
