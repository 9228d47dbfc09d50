// SPDX-License-Identifier: Apache-2.0
// Clients that send nonsense, nothing, or too much, and that do not read.
#include <algorithm>
#include <filesystem>
#include <future>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client_server_testing.h"

namespace braid {
namespace {

// A registration, larger than what the loop checks.
std::string large_message() {
  flatbuffers::FlatBufferBuilder builder;
  const std::string name(100'000, 't');
  const std::vector tensors = {proto::CreateTensorDescriptionDirect(builder, name.c_str())};
  const auto body = proto::CreateRegisterTensorsDirect(builder, &tensors);
  builder.Finish(
      proto::CreateClientMessage(builder, proto::ClientBody::RegisterTensors, body.Union()));
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

std::string framed(const std::string& message) {
  std::string frame;
  for (int shift = 0; shift < 32; shift += 8)
    frame += static_cast<char>(message.size() >> shift & 0xff);
  return frame + message;
}

TEST_F(ClientServerTest, WhatIsNoHelloIsDropped) {
  start();
  const std::string too_large("\x01\x10\0\0", 4);  // 4097 bytes
  const std::string garbage("\x08\0\0\0garbage!", 12);
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), too_large, garbage}) {
    RawClient client(path_);
    client.send_bytes(bytes);
    EXPECT_TRUE(until([&] { return client.is_closed(); }));
  }
  EXPECT_EQ(server_->counters().protocol_errors, 3u);
  EXPECT_EQ(connected_, 0);
}

TEST_F(ClientServerTest, OtherMessagesBeforeHelloAreRefused) {
  start();
  RawClient client(path_);
  client.send_query();
  EXPECT_TRUE(until([&] { return client.is_closed(); }));
  EXPECT_TRUE(bodies_.empty());
  EXPECT_EQ(server_->counters().protocol_errors, 1u);
}

TEST_F(ClientServerTest, GarbageAfterHelloEndsTheConnection) {
  start();
  auto client = greeted();
  client->send_bytes(std::string("\x08\0\0\0garbage!", 12));
  EXPECT_TRUE(closed_with("no message"));
  EXPECT_EQ(reasons_[0].code(), StatusCode::Protocol);
  EXPECT_TRUE(client->is_closed());
}

TEST_F(ClientServerTest, AnOversizedFrameEndsTheConnection) {
  start();
  auto client = greeted();
  client->send_bytes(std::string("\x01\0\0\x01", 4));
  EXPECT_TRUE(closed_with("16777217 bytes"));
}

TEST_F(ClientServerTest, HalfAMessageAndAnEndIsSaid) {
  start();
  auto client = greeted();
  client->send_bytes(std::string("\x10\0\0\0half", 8));
  run_rounds(*loop_);
  client->close();
  EXPECT_TRUE(closed_with("in the middle of a message"));
}

TEST_F(ClientServerTest, ASilentClientIsDropped) {
  ClientServerOptions options;
  options.hello_timeout_ms = 30;
  start(options);
  RawClient silent(path_);
  RawClient half(path_);
  half.send_bytes(std::string("\x20\0\0\0h", 5));
  auto polite = greeted();
  EXPECT_TRUE(until([&] { return silent.is_closed() && half.is_closed(); }));
  EXPECT_EQ(server_->counters().handshakes_timed_out, 2u);
  EXPECT_EQ(server_->counters().connections_open, 1u);
  EXPECT_TRUE(reasons_.empty());
}

class ClientServerLimitsTest : public ClientServerTest {
 protected:
  // Two clients are as many as the limit allows.
  void expect_third_refused(const std::string& part) {
    auto first = greeted();
    auto second = greeted();
    RawClient third(path_);
    ASSERT_TRUE(until([&] { return server_->counters().connections_refused == 1; }));
    const std::string text = refusal(third);
    EXPECT_NE(text.find(part), std::string::npos) << text;
    first->close();
    ASSERT_TRUE(until([&] { return server_->counters().connections_open == 1; }));
    greeted();
  }
};

TEST_F(ClientServerLimitsTest, MoreThanTheLimitAreToldAndDropped) {
  ClientServerOptions options;
  options.connections_max = 2;
  start(options);
  expect_third_refused("2 connections");
}

TEST_F(ClientServerLimitsTest, AUsersConnectionsAreCountedAndLimited) {
  UserLimits limits;
  limits[UserResource::Connections] = 2;
  start(limits);
  expect_third_refused("connections on this node");
}

TEST_F(ClientServerLimitsTest, WhatADaemonHasOpenForAUserIsCountedAndLimited) {
  UserLimits limits;
  limits[UserResource::Descriptors] = 14;  // a connection takes 6
  start(limits);
  expect_third_refused("file descriptors of braidd");
}

TEST_F(ClientServerTest, MessagesThatComeInPartAreTheirUsersMemory) {
  constexpr uint64_t kPart = 100'000;
  UserLimits limits;
  limits.memory_of_user = 5 * kPart;
  start(limits);
  const auto used = [this] { return ClientServerTest::used(UserResource::BufferBytes); };
  auto first = greeted();
  EXPECT_EQ(used(), 0u);
  const std::string part = std::string("\0\0\0\x01", 4) + std::string(kPart, 'x');  // of 16 MiB
  first->send_bytes(part);
  ASSERT_TRUE(until([&] { return used() >= kPart; }));
  std::vector<std::unique_ptr<RawClient>> others;
  while (reasons_.empty() && others.size() < 5) {
    const uint64_t before = used();
    others.push_back(greeted());
    others.back()->send_bytes(part);
    ASSERT_TRUE(until([&] { return used() > before || !reasons_.empty(); }));
    EXPECT_LE(used(), 5 * kPart);
    run_rounds(*loop_);
  }
  ASSERT_EQ(reasons_.size(), 1u);
  EXPECT_EQ(reasons_[0].code(), StatusCode::ResourceExhausted);
  EXPECT_NE(reasons_[0].message().find("client.user_result_bytes_max"), std::string::npos)
      << reasons_[0].message();
  others.clear();
  first.reset();
  EXPECT_TRUE(until([&] { return used() == 0; }));
}

TEST_F(ClientServerTest, AMessageThatHasComeTakesNoMemoryAnyMore) {
  start(UserLimits());
  const auto used = [this] { return ClientServerTest::used(UserResource::BufferBytes); };
  auto client = greeted();
  const std::string frame = framed(large_message());
  client->send_bytes(frame.substr(0, 50'000));
  ASSERT_TRUE(until([&] { return used() > 0; }));
  client->send_bytes(frame.substr(50'000));
  ASSERT_TRUE(until([&] { return !bodies_.empty(); }));
  EXPECT_EQ(used(), 0u);
}

// Each message takes a whole round: then other users have their turn.
TEST_F(ClientServerTest, WhoSendsMuchHoldsUpNoOtherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  class SteppedClock final : public Clock {
   public:
    uint64_t now_ns() const override { return ns; }
    uint64_t ns = 1;
  } clock;
  ClientServerOptions options;
  options.clock = &clock;
  start(options);
  ::chmod(std::filesystem::path(path_).parent_path().c_str(), 0755);
  ::chmod(path_.c_str(), 0666);
  std::vector<std::unique_ptr<RawClient>> many;
  for (int i = 0; i < 10; ++i) many.push_back(greeted());
  // Not seteuid(): of this thread alone.
  ASSERT_EQ(::syscall(SYS_setresuid, -1, 65534, -1), 0);
  auto other = greeted();
  ASSERT_EQ(::syscall(SYS_setresuid, -1, 0, -1), 0);
  for (auto& client : many) {
    for (int i = 0; i < 16; ++i) client->send_query();
  }
  other->send_query();
  std::vector<uid_t> heard;
  on_message_ = [&](ClientConnection& connection) {
    heard.push_back(connection.credentials().uid);
    clock.ns += UserTurns::kRoundNs;
  };
  size_t before = 0;
  for (int round = 0; round < 100'000 && heard.size() < 161; ++round) {
    run_rounds(*loop_, 1);
    ASSERT_LE(heard.size(), before + 1) << "a millisecond in a round";
    before = heard.size();
  }
  EXPECT_EQ(heard.size(), 161u);
  const auto first = std::find(heard.begin(), heard.end(), 65534U) - heard.begin();
  EXPECT_LE(first, 2) << "it has its turn after one message of the others";
}

// Many connections, each with less than its own limit.
TEST_F(ClientServerTest, WhatAUserDoesNotReadIsCountedOverAllItsConnections) {
  UserLimits limits;
  limits[UserResource::ReplyBytes] = 1 << 20;
  start(limits);
  const auto used = [this] { return ClientServerTest::used(UserResource::ReplyBytes); };
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(greeted());
    for (int sent = 0; sent < 6 && reasons_.empty(); ++sent) {
      send_reply(std::string(100'000, 'x'));
      EXPECT_LE(used(), 1u << 20);
    }
  }
  EXPECT_TRUE(until([&] { return !reasons_.empty(); }));
  EXPECT_NE(reasons_[0].message().find("bytes of unread messages"), std::string::npos)
      << reasons_[0].message();
  for (auto& client : clients) client->close();
  EXPECT_TRUE(until([&] { return used() == 0; }));
}

TEST_F(ClientServerTest, AClientThatDoesNotReadIsDropped) {
  ClientServerOptions options;
  options.send_queue_bytes_max = 1 << 20;
  start(options);
  auto client = greeted();
  int sent = 0;
  while (connection_ != nullptr && reasons_.empty() && sent < 1000) {
    send_reply(std::string(100'000, 'x'));
    ++sent;
    run_rounds(*loop_, 2);
  }
  EXPECT_TRUE(closed_with("does not read"));
  EXPECT_GT(sent, 10);
}

// Large messages are checked on a thread: the loop would be held up.
class ClientServerWorkerTest : public ClientServerTest {
 protected:
  void SetUp() override {
    ClientServerOptions options;
    options.worker = &worker_;
    start(UserLimits(), options);
  }
  void TearDown() override { server_.reset(); }  // before its thread
  // The thread does nothing before let_go().
  void hold() {
    worker_.post([this] { released_.get_future().wait(); });
  }
  void let_go() { released_.set_value(); }
  WorkThread worker_{*loop_, "work"};
  std::promise<void> released_;
};

TEST_F(ClientServerWorkerTest, LargeMessagesAreCheckedElsewhereAndInTheirOrder) {
  auto client = greeted();
  auto other = greeted();
  hold();
  client->send_bytes(framed(large_message()));
  client->send_query();
  run_rounds(*loop_);
  EXPECT_TRUE(bodies_.empty());
  other->send_query();
  EXPECT_TRUE(until([&] { return bodies_.size() == 1; }));
  let_go();
  EXPECT_TRUE(until([&] { return bodies_.size() == 3; }));
  EXPECT_EQ(bodies_[1], proto::ClientBody::RegisterTensors);
  EXPECT_EQ(bodies_[2], proto::ClientBody::StatusQuery);
}

TEST_F(ClientServerWorkerTest, AMessageTakesItsUsersMemoryUntilItIsHandled) {
  const auto used = [this] { return ClientServerTest::used(UserResource::BufferBytes); };
  auto client = greeted();
  hold();
  const std::string message = large_message();
  client->send_bytes(framed(message));
  ASSERT_TRUE(until([&] { return used() == message.size(); }));
  run_rounds(*loop_);
  EXPECT_EQ(used(), message.size());
  let_go();
  ASSERT_TRUE(until([&] { return bodies_.size() == 1; }));
  EXPECT_TRUE(until([&] { return used() == 0; }));
}

TEST_F(ClientServerWorkerTest, LargeGarbageEndsTheConnection) {
  auto client = greeted();
  client->send_bytes(framed(std::string(large_message().size(), 'x')));
  EXPECT_TRUE(closed_with("no message"));
  EXPECT_EQ(server_->counters().protocol_errors, 1u);
}

TEST_F(ClientServerWorkerTest, AClientMayGoWhileItsMessageIsChecked) {
  auto client = greeted();
  hold();
  client->send_bytes(framed(large_message()));
  run_rounds(*loop_);
  connection_->close_after_send();
  EXPECT_TRUE(closed_with("braidd closed the connection"));
  let_go();
  bool is_through = false;
  ASSERT_TRUE(worker_.run([] {}, [&] { is_through = true; }));
  EXPECT_TRUE(until([&] { return is_through; }));
  EXPECT_TRUE(bodies_.empty());
}

TEST_F(ClientServerTest, QueuedFramesGoOutWhenTheClientReads) {
  start();
  auto client = greeted();
  send_large_frames(8);
  connection_->close_after_send();
  int frames = 0;
  EXPECT_TRUE(until([&] {
    const auto outcome = client->read();
    if (outcome == FrameReader::Outcome::Frame) {
      client->take();
      ++frames;
    }
    return outcome == FrameReader::Outcome::EndOfStream;
  }));
  EXPECT_EQ(frames, 8);
}

}  // namespace
}  // namespace braid
