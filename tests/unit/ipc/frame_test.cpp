// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client_server_testing.h"
#include "ipc/frame_reader.h"
#include "ipc/frame_writer.h"

namespace braid {
namespace {

class FrameTest : public ::testing::Test {
 protected:
  FrameTest() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    near_ = Fd(ends[0]);
    far_ = Fd(ends[1]);
  }
  void send_raw(std::vector<uint8_t> bytes) {
    ASSERT_EQ(::write(near_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  FrameReader::Outcome read() { return reader_.read(far_.get(), kFrameBytesMax); }

  Fd near_;
  Fd far_;
  FrameWriter writer_{64 << 20};
  FrameReader reader_;
};

TEST_F(FrameTest, DescriptorsStayWithTheirFrame) {
  const Fd a(::eventfd(0, EFD_CLOEXEC));
  const Fd b(::eventfd(0, EFD_CLOEXEC));
  const int first[] = {a.get()};
  const int second[] = {a.get(), b.get(), a.get(), b.get()};
  ASSERT_TRUE(writer_.push(std::vector<uint8_t>{1}, {}));
  ASSERT_TRUE(writer_.push(std::vector<uint8_t>{2}, first));
  ASSERT_TRUE(writer_.push(std::vector<uint8_t>{3}, {}));
  ASSERT_TRUE(writer_.push(std::vector<uint8_t>{4}, second));
  ASSERT_TRUE(writer_.flush(near_.get()));
  const size_t expected[] = {0, 1, 0, 4};
  for (uint8_t i = 0; i < 4; ++i) {
    ASSERT_EQ(read(), FrameReader::Outcome::Frame);
    const Frame frame = reader_.take();
    EXPECT_EQ(frame.bytes[0], i + 1);
    EXPECT_EQ(frame.fds.size(), expected[i]);
    for (const Fd& fd : frame.fds) EXPECT_EQ(::fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
  }
}

TEST_F(FrameTest, BytesThatComeOneByOneMakeAFrame) {
  for (const uint8_t byte : {2, 0, 0, 0, 7}) {
    EXPECT_EQ(read(), FrameReader::Outcome::WouldBlock);
    send_raw({byte});
  }
  EXPECT_EQ(read(), FrameReader::Outcome::WouldBlock);
  EXPECT_TRUE(reader_.is_within_frame());
  send_raw({8});
  ASSERT_EQ(read(), FrameReader::Outcome::Frame);
  EXPECT_EQ(reader_.take().bytes, (std::vector<uint8_t>{7, 8}));
  EXPECT_FALSE(reader_.is_within_frame());
}

TEST_F(FrameTest, LargeFramesGoInPieces) {
  std::vector<uint8_t> large(5 << 20);
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<uint8_t>(i * 7);
  ASSERT_TRUE(writer_.push(large, {}));
  int pieces = 0;
  FrameReader::Outcome outcome = FrameReader::Outcome::WouldBlock;
  while (outcome == FrameReader::Outcome::WouldBlock && ++pieces < 100'000) {
    ASSERT_TRUE(writer_.flush(near_.get()));
    outcome = read();
  }
  ASSERT_EQ(outcome, FrameReader::Outcome::Frame);
  EXPECT_GT(pieces, 1);
  EXPECT_TRUE(writer_.is_empty());
  EXPECT_EQ(reader_.take().bytes, large);
}

TEST_F(FrameTest, ImpossibleLengthsAreRefused) {
  send_raw({0, 0, 0, 0});
  EXPECT_EQ(read(), FrameReader::Outcome::Error);
  EXPECT_EQ(reader_.error().code(), StatusCode::Protocol);
  FrameReader fresh;
  send_raw({1, 0, 0, 1});
  EXPECT_EQ(fresh.read(far_.get(), kFrameBytesMax), FrameReader::Outcome::Error);
  EXPECT_NE(fresh.error().message().find("16777217"), std::string::npos) << fresh.error().message();
}

TEST_F(FrameTest, EndOfStreamIsSeen) {
  send_raw({4, 0});
  near_.reset();
  EXPECT_EQ(read(), FrameReader::Outcome::EndOfStream);
  EXPECT_TRUE(reader_.is_within_frame());
}

TEST_F(FrameTest, TheQueueIsBounded) {
  FrameWriter small(100);
  EXPECT_TRUE(small.push(std::vector<uint8_t>(90), {}));
  const Status error = small.push(std::vector<uint8_t>(7), {});
  EXPECT_EQ(error.code(), StatusCode::ResourceExhausted);
  ASSERT_TRUE(small.flush(near_.get()));
  EXPECT_TRUE(small.push(std::vector<uint8_t>(7), {}));
  EXPECT_FALSE(small.push({}, {}));
}

TEST_F(FrameTest, WritingToNobodyIsAnErrorAndNoSignal) {
  far_.reset();
  ASSERT_TRUE(writer_.push(std::vector<uint8_t>{1}, {}));
  EXPECT_EQ(writer_.flush(near_.get()).cause(), EPIPE);
}

// As many as the kernel lets anybody send: what it had no room for it would close itself.
TEST_F(FrameTest, DescriptorsThatAreTooManyAreGivenBack) {
  const Fd event(::eventfd(0, EFD_CLOEXEC));
  constexpr size_t kCount = 253;
  send_with(near_.get(), std::string("\1\0\0\0\t", 5), std::vector(kCount, event.get()));
  ASSERT_EQ(read(), FrameReader::Outcome::Error);
  EXPECT_EQ(reader_.error().code(), StatusCode::Protocol);
  EXPECT_EQ(reader_.take_fds().size(), kCount);
  EXPECT_TRUE(reader_.take().fds.empty());
}

TEST_F(FrameTest, DescriptorsAreNotTakenWhereNoneMayBe) {
  const Fd event(::eventfd(0, EFD_CLOEXEC));
  const int one[] = {event.get()};
  ASSERT_TRUE(writer_.push(std::vector<uint8_t>{1}, one));
  ASSERT_TRUE(writer_.flush(near_.get()));
  EXPECT_EQ(reader_.read(far_.get(), kFrameBytesMax, 0), FrameReader::Outcome::Error);
  EXPECT_EQ(reader_.take_fds().size(), 1u);
}

// The kernel drops what the process has no number for.
TEST_F(FrameTest, DescriptorsThatFindNoPlaceAreALimitAndNoProtocolError) {
  const Fd event(::eventfd(0, EFD_CLOEXEC));
  const int two[] = {event.get(), event.get()};
  ASSERT_TRUE(writer_.push(std::vector<uint8_t>{1}, two));
  ASSERT_TRUE(writer_.flush(near_.get()));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit one_left = before;
  one_left.rlim_cur = static_cast<rlim_t>(Fd(::open("/dev/null", O_RDONLY)).get()) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &one_left), 0);
  const FrameReader::Outcome outcome = read();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_EQ(outcome, FrameReader::Outcome::Error);
  EXPECT_EQ(reader_.error().code(), StatusCode::ResourceExhausted);
  EXPECT_NE(reader_.error().message().find("no file descriptors left (limit "), std::string::npos)
      << reader_.error().message();
}

}  // namespace
}  // namespace braid
