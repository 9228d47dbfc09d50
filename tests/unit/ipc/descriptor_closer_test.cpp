// SPDX-License-Identifier: Apache-2.0
#include "ipc/descriptor_closer.h"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include <fcntl.h>
#include <sys/eventfd.h>

#include "lingering_socket.h"

namespace braid {
namespace {

constexpr uid_t kUser = 1001;
constexpr uid_t kNeighbour = 1002;

Fd some_fd() { return Fd(::eventfd(0, EFD_CLOEXEC)); }

bool becomes(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
}

// A close() that takes until the test says so.
struct Stuck {
  std::promise<void> promise;
  std::shared_future<void> end{promise.get_future()};
  std::shared_ptr<std::atomic<int>> begun = std::make_shared<std::atomic<int>>(0);
  std::function<void(Fd)> close() const {
    return [end = end, begun = begun](Fd) {
      ++*begun;
      end.wait();
    };
  }
};

TEST(DescriptorCloserTest, ClosesWhatItIsGiven) {
  DescriptorCloser closer;
  Fd fd = some_fd();
  const int number = fd.get();
  closer.close(kUser, std::move(fd));
  closer.close(kUser, Fd());
  EXPECT_TRUE(becomes([&] { return closer.waiting() == 0; }));
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

TEST(DescriptorCloserTest, ALingeringSocketIsToldToEnd) {
  DescriptorCloser closer;
  for (int i = 0; i < 3; ++i) {
    LingeringSocket socket;
    closer.close(kUser, socket.take());
    EXPECT_TRUE(becomes([&] { return closer.waiting() == 0; }));
  }
}

TEST(DescriptorCloserTest, OneUsersDescriptorsHoldUpNobodyElses) {
  Stuck stuck;
  std::atomic<int> neighbours = 0;
  std::atomic<int> stuck_number = -1;
  DescriptorCloser closer([&, close = stuck.close()](Fd fd) {
    if (fd.get() == stuck_number) return close(std::move(fd));
    ++neighbours;
  });
  Fd first = some_fd();
  stuck_number = first.get();
  closer.close(kUser, std::move(first));
  ASSERT_TRUE(becomes([&] { return *stuck.begun == 1; }));
  for (int i = 0; i < 10; ++i) {
    closer.close(kUser, some_fd());
    closer.close(kNeighbour, some_fd());
  }
  EXPECT_TRUE(becomes([&] { return neighbours == 10; }));
  EXPECT_EQ(closer.waiting(), 11u);
  stuck.promise.set_value();
  EXPECT_TRUE(becomes([&] { return closer.waiting() == 0; }));
}

TEST(DescriptorCloserTest, AUserHasHisShareAndNotMore) {
  Stuck stuck;
  DescriptorCloser closer(stuck.close());
  EXPECT_FALSE(closer.is_full(kUser));
  for (size_t i = 0; i < DescriptorCloser::kWaitingPerOwnerMax; ++i) {
    EXPECT_FALSE(closer.is_full(kUser));
    closer.close(kUser, some_fd());
  }
  EXPECT_TRUE(closer.is_full(kUser));
  EXPECT_FALSE(closer.is_full(kNeighbour));
  stuck.promise.set_value();
  EXPECT_TRUE(becomes([&] { return closer.waiting() == 0; }));
  EXPECT_FALSE(closer.is_full(kUser));
}

TEST(DescriptorCloserTest, ItsEndWaitsForNobody) {
  Stuck stuck;
  {
    DescriptorCloser closer(stuck.close());
    for (uid_t user = 0; user < 2 * DescriptorCloser::kThreadsMax; ++user)
      closer.close(user, some_fd());
    EXPECT_TRUE(becomes([&] { return *stuck.begun == DescriptorCloser::kThreadsMax; }));
  }
  stuck.promise.set_value();
  EXPECT_TRUE(becomes([&] { return *stuck.begun == 2 * DescriptorCloser::kThreadsMax; }));
}

}  // namespace
}  // namespace braid
