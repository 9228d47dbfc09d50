// SPDX-License-Identifier: Apache-2.0
#include "loop/tcp_stream.h"

#include <string>
#include <utility>

#include "loop/tcp_listener.h"
#include "loop_testing.h"

namespace braid {
namespace {

struct Recorder final : TcpStream::Handler {
  void on_connected() override {
    ++connected;
    if (react_to_connected) react_to_connected();
  }
  void on_bytes(std::span<const uint8_t> bytes) override {
    received.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (react_to_bytes) react_to_bytes(bytes);
  }
  void on_end(const Status& reason) override {
    ++ended;
    end = reason;
    if (react_to_end) react_to_end();
  }

  int connected = 0;
  int ended = 0;
  std::string received;
  Status end;
  std::function<void()> react_to_connected;
  std::function<void(std::span<const uint8_t>)> react_to_bytes;
  std::function<void()> react_to_end;
};

Status write_text(TcpStream& stream, const std::string& text) {
  return stream.write({{reinterpret_cast<const uint8_t*>(text.data()), text.size()}});
}

class TcpStreamTest : public testing::LoopTest {
 protected:
  static constexpr size_t kQueueBytes = 8 << 20;

  void SetUp() override {
    auto created = TcpListener::create(*loop_, *SocketAddress::parse("127.0.0.1", 0), kQueueBytes,
                                       [this](Result<std::unique_ptr<TcpStream>> stream) {
                                         ASSERT_TRUE(stream.is_ok());
                                         accepted_ = std::move(stream).value();
                                         accepted_->start(server_);
                                       });
    ASSERT_TRUE(created.is_ok()) << created.status().message();
    listener_ = std::move(created).value();
    stream_ = std::make_unique<TcpStream>(*loop_, kQueueBytes);
  }

  void connect() {
    stream_->connect(listener_->address(), client_);
    EXPECT_EQ(client_.connected, 0);
    run_until([this] { return client_.connected == 1 && accepted_ != nullptr; });
  }

  Recorder client_;
  Recorder server_;
  std::unique_ptr<TcpListener> listener_;
  std::unique_ptr<TcpStream> accepted_;
  std::unique_ptr<TcpStream> stream_;
};

TEST_F(TcpStreamTest, CarriesBytesBothWays) {
  connect();
  ASSERT_TRUE(write_text(*stream_, "to the server").is_ok());
  ASSERT_TRUE(write_text(*accepted_, "to the client").is_ok());
  run_until([this] { return server_.received.size() == 13 && client_.received.size() == 13; });
  EXPECT_EQ(server_.received, "to the server");
  EXPECT_EQ(client_.received, "to the client");
}

TEST_F(TcpStreamTest, KnowsItsRoundTripOnceItIsConnected) {
  EXPECT_EQ(stream_->round_trip_ns(), std::nullopt);
  connect();
  ASSERT_TRUE(write_text(*stream_, "there and back").is_ok());
  run_until([this] { return !server_.received.empty(); });
  EXPECT_GT(stream_->round_trip_ns().value_or(0), 0u);
  EXPECT_GT(accepted_->round_trip_ns().value_or(0), 0u);
}

TEST_F(TcpStreamTest, WhatIsWrittenBeforeItIsConnectedIsNotLost) {
  ASSERT_TRUE(write_text(*stream_, "early").is_ok());
  connect();
  run_until([this] { return server_.received == "early"; });
}

TEST_F(TcpStreamTest, CarriesMoreThanTheSocketTakesAtOnce) {
  connect();
  const std::string text(6 << 20, 'x');
  ASSERT_TRUE(write_text(*stream_, text).is_ok());
  run_until([&] { return server_.received.size() == text.size(); });
  EXPECT_EQ(stream_->queued_bytes(), 0u);
}

TEST_F(TcpStreamTest, RefusesAllOfAWriteThatIsOverItsQueue) {
  connect();
  ASSERT_TRUE(write_text(*stream_, std::string(kQueueBytes - 1, 'x')).is_ok());
  const Status refused = write_text(*stream_, "yy");
  EXPECT_EQ(refused.code(), StatusCode::ResourceExhausted);
  ASSERT_TRUE(write_text(*stream_, "z").is_ok());
  run_until([this] { return server_.received.size() == kQueueBytes; });
  EXPECT_EQ(server_.received.find('y'), std::string::npos);
  EXPECT_EQ(server_.received.back(), 'z');
}

TEST_F(TcpStreamTest, TheOtherSidesCloseIsTheEnd) {
  connect();
  ASSERT_TRUE(write_text(*accepted_, "last words").is_ok());
  accepted_.reset();
  run_until([this] { return client_.ended > 0; });
  run_rounds();
  EXPECT_EQ(client_.ended, 1);
  EXPECT_EQ(client_.received, "last words");
  EXPECT_TRUE(TcpStream::is_end_of_stream(client_.end)) << client_.end.message();
}

TEST_F(TcpStreamTest, AConnectionThatIsRefusedEndsWithTheReason) {
  const SocketAddress address = listener_->address();
  listener_.reset();
  run_rounds();
  stream_->connect(address, client_);
  EXPECT_EQ(client_.ended, 0);
  run_until([this] { return client_.ended > 0; });
  EXPECT_EQ(client_.connected, 0);
  EXPECT_EQ(client_.end.code(), StatusCode::Unavailable);
}

TEST_F(TcpStreamTest, MayBeDestroyedWhenItIsConnected) {
  client_.react_to_connected = [this] { stream_.reset(); };
  stream_->connect(listener_->address(), client_);
  run_until([this] { return server_.ended == 1; });
  EXPECT_EQ(client_.ended, 0);
}

TEST_F(TcpStreamTest, MayBeDestroyedWhenBytesComeWhichStayValid) {
  connect();
  std::string seen;
  client_.react_to_bytes = [&](std::span<const uint8_t> bytes) {
    stream_.reset();
    seen.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  ASSERT_TRUE(write_text(*accepted_, "bytes").is_ok());
  run_until([&] { return !seen.empty(); });
  EXPECT_EQ(seen, "bytes");
}

TEST_F(TcpStreamTest, MayBeDestroyedAtItsEndAndWhileItWrites) {
  connect();
  client_.react_to_end = [this] { stream_.reset(); };
  ASSERT_TRUE(write_text(*stream_, std::string(6 << 20, 'x')).is_ok());
  accepted_.reset();
  run_until([this] { return stream_ == nullptr; });
  EXPECT_EQ(client_.ended, 1);
}

}  // namespace
}  // namespace braid
