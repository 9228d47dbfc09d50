// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ucx_sockets.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include <gtest/gtest.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "base/fd.h"
#include "base/socket_address.h"

namespace braid {
namespace {

constexpr Sha256Digest kProofKey{47, 11};
constexpr Sha256Digest kOtherProofKey{47, 12};
constexpr int kTimeoutMs = 30'000;

Fd tcp_socket() { return Fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

SocketAddress address_of(const Fd& socket) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  return *SocketAddress::from(reinterpret_cast<const sockaddr*>(&address));
}

// Listens as UCX does.
Fd listening_socket() {
  Fd socket = tcp_socket();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(::listen(socket.get(), 1024), 0);
  return socket;
}

bool happens(const Fd& socket, short event) {
  pollfd entry{socket.get(), event, 0};
  return ::poll(&entry, 1, kTimeoutMs) == 1 && (entry.revents & event) != 0;
}

Fd connect_to(const Fd& listening) {
  Fd socket = tcp_socket();
  const auto address = address_of(listening);
  if (::connect(socket.get(), address.get(), sizeof(sockaddr_in)) != 0) {
    EXPECT_EQ(errno, EINPROGRESS);
  }
  EXPECT_TRUE(happens(socket, POLLOUT));
  return socket;
}

// UCX's accept(): of what is there, the next one.
Fd accept_from(const Fd& listening) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  return Fd(::accept(listening.get(), reinterpret_cast<sockaddr*>(&address), &bytes));
}

ssize_t say(const Fd& socket, std::string_view words) {
  return ::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL);
}

std::string_view hear(const Fd& socket) {
  static std::array<char, 256> text;
  EXPECT_TRUE(happens(socket, POLLIN));
  const ssize_t bytes = ::recv(socket.get(), text.data(), text.size(), 0);
  return {text.data(), bytes < 0 ? 0 : static_cast<size_t>(bytes)};
}

bool is_closed(const Fd& socket) {
  char byte = 0;
  return happens(socket, POLLIN) && ::recv(socket.get(), &byte, 1, 0) <= 0;
}

class UcxSocketsTest : public ::testing::Test {
 protected:
  UcxSocketsTest() {
    const UcxSockets::Use use(*listening_);
    port_ = listening_socket();
  }
  // A connection that UCX begins for the worker of `sockets`. What is said and heard from now on is
  // in that worker's calls.
  Fd begin(UcxSockets& sockets) { return begin(sockets, port_); }
  Fd begin(UcxSockets& sockets, const Fd& port) {
    use_.emplace(sockets);
    return connect_to(port);
  }
  void expect_nobody() {
    EXPECT_FALSE(accept_from(port_).is_valid());
    EXPECT_EQ(errno, EAGAIN);
  }
  void expect_closed_and_counted(const Fd& stranger) {
    ASSERT_TRUE(happens(port_, POLLIN));
    expect_nobody();
    EXPECT_TRUE(is_closed(stranger));
    EXPECT_EQ(strangers_, 1u);
  }

  std::atomic<uint64_t> strangers_ = 0;
  std::unique_ptr<UcxSockets> listening_ =
      std::make_unique<UcxSockets>(kProofKey, "lo", strangers_);
  UcxSockets connecting_{kProofKey, "lo", strangers_};
  std::optional<UcxSockets::Use> use_;
  Fd port_;
};

TEST_F(UcxSocketsTest, WhoKnowsTheKeyTalksAsIfNothingWereBetween) {
  EXPECT_TRUE(listening_->has_listeners());
  const Fd outer = begin(connecting_);
  EXPECT_EQ(say(outer, "hello"), 5);
  ASSERT_TRUE(happens(port_, POLLIN));
  const Fd inner = accept_from(port_);
  ASSERT_TRUE(inner.is_valid());
  EXPECT_EQ(hear(inner), "hello");
  EXPECT_EQ(say(inner, "yes?"), 4);
  std::string_view heard = hear(outer);  // the answer to the proof may have come before the rest
  if (heard.empty()) heard = hear(outer);
  EXPECT_EQ(heard, "yes?");
  EXPECT_EQ(say(outer, "more"), 4);
  EXPECT_EQ(hear(inner), "more");
  EXPECT_EQ(strangers_, 0u);
}

TEST_F(UcxSocketsTest, NobodyHearsOfAConnectionThatSaysNothing) {
  const Fd silent = connect_to(port_);
  expect_nobody();
}

TEST_F(UcxSocketsTest, WhoProvesNothingIsClosedAndCounted) {
  const Fd stranger = connect_to(port_);
  say(stranger, "a message that is longer than a proof has to be for a look at it");
  expect_closed_and_counted(stranger);
}

TEST_F(UcxSocketsTest, WhoHasAnotherKeyIsClosedAndCounted) {
  UcxSockets other(kOtherProofKey, "lo", strangers_);
  const Fd stranger = begin(other);
  say(stranger, "hello");
  expect_closed_and_counted(stranger);
}

TEST_F(UcxSocketsTest, AProofThatWasHeardLetsNoSecondConnectionIn) {
  const Fd outer = begin(connecting_);
  EXPECT_EQ(say(outer, "hello"), 5);
  ASSERT_TRUE(happens(port_, POLLIN));
  const Fd inner = accept_from(port_);
  ASSERT_TRUE(inner.is_valid());
  const auto proof = flow_proof(kProofKey, FlowProofOf::Connecting, address_of(port_).port());
  use_.reset();
  const Fd second = connect_to(port_);
  say(second, {reinterpret_cast<const char*>(proof.data()), proof.size()});
  expect_closed_and_counted(second);
}

TEST_F(UcxSocketsTest, HalfAProofIsNone) {
  const auto proof = flow_proof(kProofKey, FlowProofOf::Connecting, address_of(port_).port());
  const Fd stranger = connect_to(port_);
  ::send(stranger.get(), proof.data(), proof.size() / 2, MSG_NOSIGNAL);
  expect_closed_and_counted(stranger);
}

TEST_F(UcxSocketsTest, StrangersDoNotStandInTheWay) {
  std::vector<Fd> strangers;
  for (int i = 0; i < 20; ++i) {
    strangers.push_back(connect_to(port_));
    say(strangers.back(), "garbage");
  }
  const Fd outer = begin(connecting_);
  EXPECT_EQ(say(outer, "hello"), 5);
  Fd inner;
  while (!inner.is_valid()) {
    ASSERT_TRUE(happens(port_, POLLIN));
    inner = accept_from(port_);
  }
  EXPECT_EQ(hear(inner), "hello");
  EXPECT_EQ(strangers_, 20u);
}

// Somebody else may have got the port meanwhile: UCX must not listen to him.
TEST_F(UcxSocketsTest, WhoListensHasToProveHimselfToo) {
  const Fd imposter = listening_socket();
  const Fd outer = begin(connecting_, imposter);
  EXPECT_EQ(say(outer, "hello"), 5);
  ASSERT_TRUE(happens(imposter, POLLIN));
  const Fd inner = accept_from(imposter);
  const std::string_view proof = hear(inner);
  EXPECT_EQ(say(inner, proof.substr(0, kFlowProofBytes)),
            static_cast<ssize_t>(kFlowProofBytes));  // an echo
  ASSERT_TRUE(happens(outer, POLLIN));
  char byte = 0;
  EXPECT_EQ(::recv(outer.get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(UcxSocketsTest, AProofForOnePortIsNoneForAnother) {
  const auto port = address_of(port_).port();
  EXPECT_NE(flow_proof(kProofKey, FlowProofOf::Connecting, port),
            flow_proof(kProofKey, FlowProofOf::Connecting, static_cast<uint16_t>(port + 1)));
  EXPECT_NE(flow_proof(kProofKey, FlowProofOf::Connecting, port),
            flow_proof(kProofKey, FlowProofOf::Listening, port));
}

TEST_F(UcxSocketsTest, WhatWasWaitingWhenThePortWasShutIsClosed) {
  const Fd outer = begin(connecting_);
  EXPECT_EQ(say(outer, "hello"), 5);
  ASSERT_TRUE(happens(port_, POLLIN));
  listening_->shut();
  expect_nobody();
  EXPECT_TRUE(is_closed(outer));
}

TEST_F(UcxSocketsTest, ASocketThatHasTheNumberOfOneThatIsGoneIsNotTouched) {
  Fd begun = begin(connecting_);
  const int number = begun.get();
  begun.reset();
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()), 0);
  const Fd first(pair[0]);
  const Fd second(pair[1]);
  ASSERT_TRUE(pair[0] == number || pair[1] == number);
  const Fd& same = pair[0] == number ? first : second;
  const Fd& other = pair[0] == number ? second : first;
  EXPECT_EQ(say(same, "untouched"), 9);
  EXPECT_EQ(hear(other), "untouched");
}

TEST_F(UcxSocketsTest, WhatIsAboutToBeClosedWaitsForNoRoom) {
  int ends[2]{-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const Fd full(ends[0]);
  const Fd silent(ends[1]);
  const UcxSockets::Use use(connecting_);
  while (say(full, "something") > 0) {
  }
  EXPECT_EQ(errno, EAGAIN);
  connecting_.end();
  EXPECT_EQ(say(full, "closing"), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_EQ(say(silent, "closing"), 7) << "there is room";
}

// A socket that is none shows that the kernel is not asked again.
TEST_F(UcxSocketsTest, AWorkersDeviceIsAskedOnceForItsSpeed) {
  ethtool_cmd command{};
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&command);
  const auto ask = [&](int socket) {
    command.cmd = ETHTOOL_GSET;
    return ::ioctl(socket, SIOCETHTOOL, &request) == 0 ? 0 : errno;
  };
  EXPECT_EQ(ask(-1), EBADF);
  const UcxSockets::Use use(connecting_);
  const int first = ask(tcp_socket().get());
  EXPECT_NE(first, EBADF);
  EXPECT_EQ(ask(-1), first);
}

// UCX tries until it has a port.
TEST_F(UcxSocketsTest, WhereNoPortIsFreeTheSearchEnds) {
  const auto taken = address_of(port_);
  const auto search = [&](UcxSockets& sockets) {
    const UcxSockets::Use use(sockets);
    for (int tries = 0; tries < 100'000; ++tries) {
      const Fd socket = tcp_socket();
      if (::bind(socket.get(), taken.get(), sizeof(sockaddr_in)) == 0) return 0;
      if (errno != EADDRINUSE) return errno;
    }
    return EADDRINUSE;
  };
  EXPECT_EQ(connecting_.missing_ports(), "");
  EXPECT_EQ(search(connecting_), EADDRNOTAVAIL);
  EXPECT_NE(connecting_.missing_ports().find("net.ipv4.ip_local_port_range is "),
            std::string::npos);
}

TEST_F(UcxSocketsTest, OthersListenAsBefore) {
  const Fd plain = listening_socket();
  const Fd outer = connect_to(plain);
  const Fd inner = accept_from(plain);
  ASSERT_TRUE(inner.is_valid());
  EXPECT_EQ(say(inner, "hello"), 5);
  EXPECT_EQ(hear(outer), "hello");
}

}  // namespace
}  // namespace braid
