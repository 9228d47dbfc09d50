// SPDX-License-Identifier: Apache-2.0
// Clients that send descriptors where none belong, of the wrong kinds, or such that closing them
// takes for ever. A server that closed one of those itself would hang the test.
#include <atomic>
#include <future>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "client_server_testing.h"
#include "lingering_socket.h"

namespace braid {
namespace {

class ClientServerDescriptorsTest : public ClientServerTest {
 protected:
  bool all_are_closed() {
    return until([&] { return server_->counters().descriptors_closing == 0; });
  }
  // The server hears others.
  void expect_alive() { greeted(); }

  const Fd event_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  const Fd memory_{::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
};

// A client that sends a socket whose close() waits for an hour.
class ClientServerLingeringTest : public ClientServerDescriptorsTest {
 protected:
  void SetUp() override { start(); }
  void TearDown() override {
    EXPECT_TRUE(all_are_closed());
    expect_alive();
  }
  LingeringSocket socket_;
  const std::vector<int> fds_of_client_ = {socket_.fd()};
};

TEST_F(ClientServerLingeringTest, NoneComeBeforeHello) {
  RawClient client(path_);
  send_with(client.fd(), std::string("\x20\0\0\0", 4), fds_of_client_);
  socket_.let_go();
  EXPECT_TRUE(until([&] { return client.is_closed(); }));
  EXPECT_EQ(server_->counters().protocol_errors, 1u);
}

TEST_F(ClientServerLingeringTest, OnlyOpenJobCarriesThem) {
  auto client = greeted();
  const int fds[] = {event_.get(), socket_.fd()};
  client->send_query(fds);
  socket_.let_go();
  EXPECT_TRUE(closed_with("StatusQuery came with 2 descriptors instead of 0"));
  EXPECT_TRUE(bodies_.empty());
}

TEST_F(ClientServerLingeringTest, ASecondHandshakeCarriesNone) {
  auto client = greeted();
  client->send_hello(proto::kClientProtocolVersion, fds_of_client_);
  socket_.let_go();
  EXPECT_TRUE(closed_with("a second handshake"));
}

TEST_F(ClientServerDescriptorsTest, WhatTheHandlerDoesNotKeepIsNotClosedLastOnTheLoop) {
  struct stat memory {};
  ASSERT_EQ(::fstat(memory_.get(), &memory), 0);
  std::promise<void> let_close;
  // The threads that close outlive the server.
  const auto closes_memory = std::make_shared<std::atomic<bool>>(false);
  ClientServerOptions options;
  options.close_descriptor = [closes_memory, inode = memory.st_ino,
                              may_close = let_close.get_future().share()](const Fd& fd) {
    struct stat closed {};
    if (::fstat(fd.get(), &closed) == 0 && closed.st_ino == inode) *closes_memory = true;
    may_close.wait();
  };
  start(options);
  auto client = greeted();
  on_message_ = [&](ClientConnection&) { fds_.clear(); };
  client->send_open_job(std::vector{memory_.get(), memory_.get(), event_.get()});
  EXPECT_TRUE(until([&] { return closes_memory->load(); }));
  EXPECT_EQ(server_->counters().descriptors_closing, 3u);
  let_close.set_value();
  EXPECT_TRUE(all_are_closed());
}

TEST_F(ClientServerDescriptorsTest, OpenJobIsRefusedWithOthersThanItsOwn) {
  start();
  const auto refused = [&](const std::vector<int>& fds) {
    auto client = greeted();
    client->send_open_job(fds);
    return refusal(*client);
  };
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const int memory = memory_.get();
  const int event = event_.get();
  LingeringSocket socket;
  EXPECT_EQ(refused({}), "OpenJob came with 0 descriptors instead of 3");
  EXPECT_EQ(refused({memory, memory, event, event}),
            "OpenJob came with 4 descriptors instead of 3");
  EXPECT_NE(refused({null.get(), memory, event}).find("the input arena is not a memfd"),
            std::string::npos);
  EXPECT_NE(refused({memory, socket.fd(), event}).find("the rings' memory is not a memfd"),
            std::string::npos);
  EXPECT_NE(refused({memory, memory, socket.fd()}).find("is not an eventfd but socket:"),
            std::string::npos);
  EXPECT_TRUE(bodies_.empty());
  EXPECT_TRUE(all_are_closed());
}

TEST_F(ClientServerDescriptorsTest, RegisterMemoryBringsOneMemfdAfterOpenJob) {
  start();
  const int memory = memory_.get();
  const int event = event_.get();
  LingeringSocket socket;
  const auto open = [&] {
    auto client = greeted();
    bodies_.clear();
    client->send_open_job(std::vector{memory, memory, event});
    EXPECT_TRUE(until([&] { return bodies_.size() == 1; }));
    return client;
  };
  {
    auto client = open();
    for (size_t i = 0; i < 2; ++i) {
      client->send_memory(std::vector{memory});
      EXPECT_TRUE(until([&] { return bodies_.size() == 2 + i; }));
      EXPECT_EQ(bodies_.back(), proto::ClientBody::RegisterMemory);
      EXPECT_EQ(fds_.size(), 1u);
    }
    client->send_query(std::vector{memory});
    EXPECT_EQ(refusal(*client), "StatusQuery came with 1 descriptors instead of 0");
  }
  const auto refused = [&](const std::vector<int>& fds) {
    auto client = open();
    client->send_memory(fds);
    const std::string text = refusal(*client);
    EXPECT_EQ(bodies_.size(), 1u) << "nobody else hears of it";
    return text;
  };
  EXPECT_EQ(refused({}), "RegisterMemory came with 0 descriptors instead of 1");
  EXPECT_EQ(refused({memory, memory}), "RegisterMemory came with 2 descriptors instead of 1");
  for (const int other : {socket.fd(), event})
    EXPECT_NE(refused({other}).find("the input arena is not a memfd"), std::string::npos);
  fds_.clear();
  EXPECT_TRUE(all_are_closed());
}

TEST_F(ClientServerLingeringTest, WhatNobodyReadsIsNotClosedOnTheLoop) {
  auto client = greeted();
  on_message_ = [](ClientConnection& connection) { connection.close_after_send(); };
  client->send_query();
  // In the socket's queue when it is closed.
  send_with(client->fd(), "x", fds_of_client_);
  socket_.let_go();
  EXPECT_TRUE(closed_with("closed the connection"));
}

// An urgent byte that was passed over would take its descriptors along.
TEST_F(ClientServerLingeringTest, UrgentBytesAreBytesLikeOthers) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd near(ends[0]);
  const Fd far(ends[1]);
  if (::send(near.get(), "x", 1, MSG_OOB | MSG_NOSIGNAL) != 1)
    GTEST_SKIP() << "this kernel has no urgent bytes on Unix sockets";
  RawClient client(path_);
  send_with(client.fd(), "x", fds_of_client_, MSG_OOB);
  client.send_bytes("yz");
  socket_.let_go();
  EXPECT_TRUE(until([&] { return client.is_closed(); }));
  EXPECT_EQ(server_->counters().protocol_errors, 1u);
}

TEST_F(ClientServerDescriptorsTest, ThoseThatAreNotAcceptedHoldUpNobodyEither) {
  ClientServerOptions options;
  options.connections_max = 1;
  start(options);
  auto first = greeted();
  RawClient refused(path_);
  RawClient waiting(path_);
  {
    LingeringSocket one, another;
    const int fds[] = {one.fd()};
    const int others[] = {another.fd()};
    send_with(refused.fd(), "x", fds);
    EXPECT_TRUE(until([&] { return server_->counters().connections_refused == 2; }));
    EXPECT_TRUE(all_are_closed());
    RawClient late(path_);
    send_with(late.fd(), "x", others);
  }
  server_.reset();  // with one in its backlog
}

// Files whose close() takes until the test says so.
class ClientServerStuckTest : public ClientServerDescriptorsTest {
 protected:
  ~ClientServerStuckTest() override { let_go(); }
  void start_stuck(size_t closing_max = SIZE_MAX) {
    ClientServerOptions options;
    options.close_descriptor = [end = end_](const Fd&) { end.wait(); };
    options.descriptors_closing_max = closing_max;
    start(options);
  }
  void let_go() {
    if (!std::exchange(has_ended_, true)) promise_.set_value();
  }
  size_t closing() const { return server_->counters().descriptors_closing; }
  // As much as is taken from one user.
  void fill() {
    const std::vector<int> fds(4, event_.get());
    while (closing() < DescriptorCloser::kWaitingPerOwnerMax) {
      const size_t before = closing();
      greeted()->send_open_job(fds);
      ASSERT_TRUE(until([&] { return closing() >= before + fds.size(); }));
    }
  }
  // Connects, and sends a descriptor at once.
  std::unique_ptr<RawClient> pushing() {
    auto client = std::make_unique<RawClient>(path_);
    const int fds[] = {event_.get()};
    send_with(client->fd(), "x", fds);
    return client;
  }

 private:
  std::promise<void> promise_;
  const std::shared_future<void> end_{promise_.get_future()};
  bool has_ended_ = false;
};

TEST_F(ClientServerStuckTest, WhoHasSentTooMuchThatCannotBeClosedIsToldSo) {
  start_stuck();
  auto client = greeted();
  fill();
  client->send_query();
  EXPECT_NE(refusal(*client).find("still closing descriptors that user "), std::string::npos);
  EXPECT_TRUE(bodies_.empty());
}

// Who is refused may have sent some already: his socket is to be closed by the same threads.
TEST_F(ClientServerStuckTest, WhatIsToBeClosedHasABound) {
  constexpr size_t kMore = 8;
  constexpr size_t kBound = DescriptorCloser::kWaitingPerOwnerMax + kMore;
  start_stuck(kBound);
  fill();
  std::vector<std::unique_ptr<RawClient>> pushers;
  for (size_t i = 0; i < 3 * kMore; ++i) pushers.push_back(pushing());
  ASSERT_TRUE(until([&] { return closing() == kBound; }));
  const uint64_t refused = server_->counters().connections_refused;
  // It looks again, and accepts nobody.
  ASSERT_TRUE(until([&] { return server_->counters().connections_refused >= refused + 3; }));
  EXPECT_EQ(closing(), kBound);
  let_go();
  for (auto& pusher : pushers) EXPECT_TRUE(until([&] { return pusher->is_closed(); }));
  EXPECT_TRUE(all_are_closed());
  expect_alive();
}

}  // namespace
}  // namespace braid
