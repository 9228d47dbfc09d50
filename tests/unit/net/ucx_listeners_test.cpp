// SPDX-License-Identifier: Apache-2.0
#include "net/ucx_listeners.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/fd.h"

namespace braid {
namespace {

Fd listening_socket() {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::listen(fd.get(), 1), 0);
  return fd;
}

TEST(UcxListeners, NewOnesLieAmongTheDescriptorsThatWereFree) {
  const Fd older = listening_socket();
  Fd hole(::eventfd(0, EFD_CLOEXEC));
  const Fd above = listening_socket();
  hole.reset();  // the next descriptor comes before one that was there already
  const int from = lowest_free_descriptor();
  const Fd first = listening_socket();
  const Fd no_listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Fd second = listening_socket();
  EXPECT_EQ(first.get(), from);
  const std::vector<int> found = listening_tcp_sockets(from, lowest_free_descriptor());
  EXPECT_EQ(found, (std::vector<int>{first.get(), above.get(), second.get()}));
}

TEST(UcxListeners, TheEndLiesBehindAllDescriptors) {
  Fd hole(::eventfd(0, EFD_CLOEXEC));
  const Fd listening = listening_socket();
  hole.reset();
  EXPECT_GT(descriptors_end(), listening.get());
  EXPECT_LT(lowest_free_descriptor(), listening.get());
}

}  // namespace
}  // namespace braid
