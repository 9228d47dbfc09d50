// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace braid {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

Fd open_something() { return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

TEST(FdTest, ClosesWhatItOwns) {
  int number = -1;
  {
    const Fd fd = open_something();
    number = fd.get();
    ASSERT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(FdTest, MovingHandsOver) {
  Fd first = open_something();
  const int number = first.get();
  Fd second = std::move(first);
  EXPECT_FALSE(first.is_valid());
  EXPECT_EQ(second.get(), number);
  Fd third = open_something();
  const int replaced = third.get();
  third = std::move(second);
  EXPECT_FALSE(is_open(replaced));
  EXPECT_TRUE(is_open(number));
}

TEST(FdTest, ReleaseGivesTheDescriptorAway) {
  Fd fd = open_something();
  const int number = fd.release();
  EXPECT_FALSE(fd.is_valid());
  fd.reset();
  EXPECT_TRUE(is_open(number));
  ::close(number);
}

}  // namespace
}  // namespace braid
