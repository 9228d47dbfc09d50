// SPDX-License-Identifier: Apache-2.0
#include "net/ucx_sockets.h"

#include <array>
#include <cerrno>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

namespace braid {
namespace {

SocketAddress local_address(const Fd& socket) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  return *SocketAddress::from(reinterpret_cast<const sockaddr*>(&address));
}

Fd tcp_socket() { return Fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

// Listens as UCX does.
Fd listening_socket() {
  Fd fd = tcp_socket();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(::listen(fd.get(), 1024), 0);
  return fd;
}

Fd connect_to(const Fd& listening) {
  Fd fd = tcp_socket();
  const auto address = local_address(listening);
  if (::connect(fd.get(), address.get(), sizeof(sockaddr_in)) != 0) {
    EXPECT_EQ(errno, EINPROGRESS);
  }
  return fd;
}

bool happens(const Fd& socket, short event, int timeout_ms) {
  pollfd entry{socket.get(), event, 0};
  return ::poll(&entry, 1, timeout_ms) == 1 && (entry.revents & event) != 0;
}
bool is_connected(const Fd& socket) { return happens(socket, POLLOUT, 30'000); }
bool is_closed(const Fd& socket) {
  char byte = 0;
  return happens(socket, POLLIN, 30'000) && ::recv(socket.get(), &byte, 1, 0) <= 0;
}
// Nobody answers: there is nothing that one could wait for.
bool is_ignored(const Fd& socket) { return !happens(socket, POLLOUT, 100); }

// UCX's accept: of what is there, the next one.
Fd accept_from(const Fd& listening) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  return Fd(::accept(listening.get(), reinterpret_cast<sockaddr*>(&address), &bytes));
}

class UcxListenersTest : public ::testing::Test {
 protected:
  UcxListenersTest() {
    const UcxListeners::Collect collect(*listeners_);
    door_ = listening_socket();
  }
  void expect_talk(const Fd& outer, const Fd& inner) {
    EXPECT_EQ(::send(outer.get(), "hallo", 5, MSG_NOSIGNAL), 5);
    ASSERT_TRUE(happens(inner, POLLIN, 30'000));
    std::array<char, 8> text{};
    EXPECT_EQ(::recv(inner.get(), text.data(), text.size(), 0), 5);
  }

  Fd door_;  // outlives them, as UCX's does
  std::unique_ptr<UcxListeners> listeners_ = std::make_unique<UcxListeners>();
};

TEST_F(UcxListenersTest, NobodyConnectsBeforeTheyAreOpened) {
  const Fd stranger = connect_to(door_);
  EXPECT_TRUE(is_ignored(stranger));
  EXPECT_FALSE(accept_from(door_).is_valid());
}

TEST_F(UcxListenersTest, WhoConnectsWaitsUntilHisSourceIsAdmitted) {
  listeners_->open();
  const Fd stranger = connect_to(door_);
  const Fd peer = connect_to(door_);
  ASSERT_TRUE(is_connected(stranger) && is_connected(peer));
  ASSERT_TRUE(happens(door_, POLLIN, 30'000));
  EXPECT_FALSE(accept_from(door_).is_valid());
  EXPECT_EQ(errno, EAGAIN);

  listeners_->admit({local_address(peer)});
  ASSERT_TRUE(happens(door_, POLLIN, 30'000)) << "UCX is called again";
  const Fd accepted = accept_from(door_);
  ASSERT_TRUE(accepted.is_valid());
  expect_talk(peer, accepted);
  EXPECT_TRUE(is_closed(stranger));
}

TEST_F(UcxListenersTest, AnAdmittedSourceMayComeLater) {
  listeners_->open();
  Fd peer = tcp_socket();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(peer.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  listeners_->admit({local_address(peer)});
  const Fd stranger = connect_to(door_);
  ASSERT_TRUE(is_connected(stranger));
  EXPECT_FALSE(accept_from(door_).is_valid());
  ASSERT_NE(::connect(peer.get(), local_address(door_).get(), sizeof(sockaddr_in)), 0);
  ASSERT_EQ(errno, EINPROGRESS);
  ASSERT_TRUE(is_connected(peer));
  ASSERT_TRUE(happens(door_, POLLIN, 30'000));
  const Fd accepted = accept_from(door_);
  ASSERT_TRUE(accepted.is_valid());
  expect_talk(peer, accepted);
  EXPECT_TRUE(is_closed(stranger));
}

TEST_F(UcxListenersTest, NobodyConnectsWhenAllWhoAreAwaitedHaveCome) {
  listeners_->open();
  const Fd peer = connect_to(door_);
  ASSERT_TRUE(is_connected(peer));
  listeners_->admit({local_address(peer)});
  ASSERT_TRUE(accept_from(door_).is_valid());
  const Fd stranger = connect_to(door_);
  EXPECT_TRUE(is_ignored(stranger));
}

TEST_F(UcxListenersTest, WithoutASourceNobodyIsAdmitted) {
  listeners_->open();
  const Fd stranger = connect_to(door_);
  ASSERT_TRUE(is_connected(stranger));
  EXPECT_FALSE(accept_from(door_).is_valid());
  listeners_->admit({});
  EXPECT_TRUE(is_closed(stranger));
  EXPECT_FALSE(accept_from(door_).is_valid());
}

TEST_F(UcxListenersTest, TooManyStrangersLeaveInTheOrderInWhichTheyCame) {
  listeners_->open();
  std::vector<Fd> strangers;
  for (size_t i = 0; i <= kUcxConnectionsWaitingMax; ++i) {
    strangers.push_back(connect_to(door_));
    ASSERT_TRUE(is_connected(strangers.back()));
    EXPECT_FALSE(accept_from(door_).is_valid());
  }
  EXPECT_FALSE(accept_from(door_).is_valid());
  EXPECT_TRUE(is_closed(strangers.front()));
  EXPECT_FALSE(happens(strangers[1], POLLIN, 0));
  listeners_->admit({local_address(strangers.back())});
  EXPECT_TRUE(accept_from(door_).is_valid());
}

TEST_F(UcxListenersTest, WhoWaitsWhenTheyGoIsClosed) {
  listeners_->open();
  const Fd seen = connect_to(door_);
  ASSERT_TRUE(is_connected(seen));
  EXPECT_FALSE(accept_from(door_).is_valid());
  const Fd unseen = connect_to(door_);
  ASSERT_TRUE(is_connected(unseen));
  listeners_.reset();
  EXPECT_TRUE(is_closed(seen));
  EXPECT_TRUE(is_closed(unseen));
}

TEST(UcxSockets, OthersListenAndAcceptAsEver) {
  const Fd door = listening_socket();
  const Fd peer = connect_to(door);
  ASSERT_TRUE(is_connected(peer));
  EXPECT_TRUE(accept_from(door).is_valid());
}

TEST(UcxSockets, ConnectionsKnowFromWhereTheyComeBeforeTheyStand) {
  const Fd door = listening_socket();
  const UcxConnections connections;
  const Fd first = connect_to(door);
  const Fd second = connect_to(door);
  ASSERT_EQ(connections.sources().size(), 2u);
  EXPECT_EQ(connections.sources()[0], local_address(first));
  EXPECT_EQ(connections.sources()[1], local_address(second));
}

}  // namespace
}  // namespace braid
