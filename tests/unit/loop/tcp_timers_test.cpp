// SPDX-License-Identifier: Apache-2.0
#include "loop/tcp_timers.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"

namespace braid {
namespace {

int option_of(const Fd& socket, int option) {
  int value = -1;
  socklen_t bytes = sizeof(value);
  ::getsockopt(socket.get(), IPPROTO_TCP, option, &value, &bytes);
  return value;
}

TEST(TcpTimers, AreShortWhereTheKernelLetsThem) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(socket.is_valid());
  if (option_of(socket, kTcpRtoMinOption) <= 0 || option_of(socket, kTcpDelackMaxOption) <= 0)
    GTEST_SKIP() << "this kernel is older than Linux 6.15";
  shorten_tcp_timers(socket.get());
  // The kernel counts in ticks of up to 10 ms.
  EXPECT_LE(option_of(socket, kTcpRtoMinOption), kTcpRetransmissionMinUs + 10'000);
  EXPECT_LE(option_of(socket, kTcpDelackMaxOption), kTcpAckDelayMaxUs + 10'000);
  EXPECT_LT(option_of(socket, kTcpDelackMaxOption), option_of(socket, kTcpRtoMinOption));
}

TEST(TcpTimers, OtherSocketsStayAsTheyAre) {
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  shorten_tcp_timers(socket.get());
  shorten_tcp_timers(-1);
}

}  // namespace
}  // namespace braid
