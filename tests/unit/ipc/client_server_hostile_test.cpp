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

TEST_F(ClientServerTest, GarbageBeforeHelloIsDropped) {
  start();
  RawClient client(path_);
  client.send_bytes("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(until([&] { return client.is_closed(); }));
  RawClient second(path_);
  second.send_bytes(std::string("\x08\0\0\0garbage!", 12));
  EXPECT_TRUE(until([&] { return second.is_closed(); }));
  EXPECT_EQ(server_->counters().protocol_errors, 2u);
  EXPECT_EQ(connected_, 0);
}

TEST_F(ClientServerTest, AFrameBeforeHelloIsSmall) {
  start();
  RawClient client(path_);
  client.send_bytes(std::string("\x01\x10\0\0", 4));  // 4097
  EXPECT_TRUE(until([&] { return client.is_closed(); }));
  EXPECT_EQ(server_->counters().protocol_errors, 1u);
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

TEST_F(ClientServerTest, ASecondHelloEndsTheConnection) {
  start();
  auto client = greeted();
  client->send_hello();
  EXPECT_TRUE(closed_with("second handshake"));
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

TEST_F(ClientServerTest, MessagesThatComeInPartAreTheirUsersMemory) {
  constexpr uint64_t kPart = 100'000;
  UserLimits limits;
  limits.memory_of_user = 5 * kPart;
  ClientServerOptions options;
  options.quotas = std::make_shared<UserQuotas>(limits, std::set<uid_t>{});
  start(options);
  const auto used = [&] { return options.quotas->used(::geteuid(), UserResource::BufferBytes); };
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
  UserLimits limits;
  ClientServerOptions options;
  options.quotas = std::make_shared<UserQuotas>(limits, std::set<uid_t>{});
  start(options);
  const auto used = [&] { return options.quotas->used(::geteuid(), UserResource::BufferBytes); };
  auto client = greeted();
  flatbuffers::FlatBufferBuilder builder;
  const std::string name(100'000, 'x');
  builder.Finish(
      proto::CreateClientMessage(builder, proto::ClientBody::PlanQuery,
                                 proto::CreatePlanQueryDirect(builder, name.c_str()).Union()));
  const uint32_t bytes = builder.GetSize();
  std::string frame(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  frame.append(reinterpret_cast<const char*>(builder.GetBufferPointer()), bytes);
  client->send_bytes(frame.substr(0, 50'000));
  ASSERT_TRUE(until([&] { return used() > 0; }));
  client->send_bytes(frame.substr(50'000));
  ASSERT_TRUE(until([&] { return !bodies_.empty(); }));
  EXPECT_EQ(used(), 0u);
}

TEST_F(ClientServerTest, MoreThanTheLimitAreToldAndDropped) {
  ClientServerOptions options;
  options.connections_max = 2;
  start(options);
  auto first = greeted();
  auto second = greeted();
  RawClient third(path_);
  ASSERT_TRUE(third.is_connected());
  ASSERT_TRUE(until([&] { return server_->counters().connections_refused == 1; }));
  ASSERT_EQ(third.read(), FrameReader::Outcome::Frame);
  const Frame frame = third.take();
  const auto* reply = proto::GetClientMessage(frame.bytes.data())->body_as_HelloReply();
  ASSERT_TRUE(reply != nullptr && reply->error() != nullptr);
  EXPECT_NE(reply->error()->str().find("2 connections"), std::string::npos);
  EXPECT_TRUE(third.is_closed());
  first->close();
  ASSERT_TRUE(until([&] { return server_->counters().connections_open == 1; }));
  greeted();
}

TEST_F(ClientServerTest, AUsersConnectionsAreCountedAndLimited) {
  UserLimits limits;
  limits[UserResource::Connections] = 2;
  ClientServerOptions options;
  options.quotas = std::make_shared<UserQuotas>(limits, std::set<uid_t>{});
  start(options);
  auto first = greeted();
  auto second = greeted();
  RawClient third(path_);
  ASSERT_TRUE(until([&] { return server_->counters().connections_refused == 1; }));
  ASSERT_EQ(third.read(), FrameReader::Outcome::Frame);
  const Frame frame = third.take();
  const auto* reply = proto::GetClientMessage(frame.bytes.data())->body_as_HelloReply();
  ASSERT_TRUE(reply != nullptr && reply->error() != nullptr);
  EXPECT_NE(reply->error()->str().find("connections on this node"), std::string::npos)
      << reply->error()->str();
  first->close();
  ASSERT_TRUE(
      until([&] { return options.quotas->used(::geteuid(), UserResource::Connections) == 1; }));
  greeted();
}

TEST_F(ClientServerTest, WhatADaemonHasOpenForAUserIsCountedAndLimited) {
  UserLimits limits;
  limits[UserResource::Descriptors] = 14;
  ClientServerOptions options;
  options.quotas = std::make_shared<UserQuotas>(limits, std::set<uid_t>{});
  start(options);
  auto first = greeted();
  auto second = greeted();
  EXPECT_EQ(options.quotas->used(::geteuid(), UserResource::Descriptors), 12u);
  RawClient third(path_);
  ASSERT_TRUE(until([&] { return server_->counters().connections_refused == 1; }));
  ASSERT_EQ(third.read(), FrameReader::Outcome::Frame);
  const Frame frame = third.take();
  const auto* reply = proto::GetClientMessage(frame.bytes.data())->body_as_HelloReply();
  ASSERT_TRUE(reply != nullptr && reply->error() != nullptr);
  EXPECT_NE(reply->error()->str().find("file descriptors of braidd"), std::string::npos)
      << reply->error()->str();
  first->close();
  ASSERT_TRUE(
      until([&] { return options.quotas->used(::geteuid(), UserResource::Descriptors) == 6; }));
  greeted();
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
  ClientServerOptions options;
  options.quotas = std::make_shared<UserQuotas>(limits, std::set<uid_t>{});
  start(options);
  const auto used = [&] { return options.quotas->used(::geteuid(), UserResource::ReplyBytes); };
  const std::string large(100'000, 'x');
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(greeted());
    for (int sent = 0; sent < 6 && reasons_.empty(); ++sent) {
      flatbuffers::FlatBufferBuilder builder;
      const auto body = proto::CreateStatusReplyDirect(builder, large.c_str());
      builder.Finish(
          proto::CreateClientMessage(builder, proto::ClientBody::StatusReply, body.Union()));
      connection_->send(builder);
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
  const std::string large(100'000, 'x');
  int sent = 0;
  while (connection_ != nullptr && reasons_.empty() && sent < 1000) {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(
        proto::CreateClientMessage(builder, proto::ClientBody::StatusReply,
                                   proto::CreateStatusReplyDirect(builder, large.c_str()).Union()));
    connection_->send(builder);
    ++sent;
    run_rounds(*loop_, 2);
  }
  EXPECT_TRUE(closed_with("does not read"));
  EXPECT_GT(sent, 10);
}

// Which the loop would be held up by.
TEST_F(ClientServerTest, LargeMessagesAreCheckedElsewhereAndInTheirOrder) {
  WorkThread worker(*loop_, "work");
  ClientServerOptions options;
  options.worker = &worker;
  start(options);
  auto client = greeted();
  auto other = greeted();
  std::promise<void> released;
  worker.post([&] { released.get_future().wait(); });
  client->send_bytes(framed(large_message()));
  client->send_query();
  run_rounds(*loop_);
  EXPECT_TRUE(bodies_.empty());
  other->send_query();
  EXPECT_TRUE(until([&] { return bodies_.size() == 1; }));
  released.set_value();
  EXPECT_TRUE(until([&] { return bodies_.size() == 3; }));
  EXPECT_EQ(bodies_[1], proto::ClientBody::RegisterTensors);
  EXPECT_EQ(bodies_[2], proto::ClientBody::StatusQuery);
  server_.reset();  // before its thread
}

TEST_F(ClientServerTest, AMessageTakesItsUsersMemoryUntilItIsHandled) {
  WorkThread worker(*loop_, "work");
  ClientServerOptions options;
  options.worker = &worker;
  options.quotas = std::make_shared<UserQuotas>(UserLimits(), std::set<uid_t>{});
  start(options);
  const auto used = [&] { return options.quotas->used(::geteuid(), UserResource::BufferBytes); };
  auto client = greeted();
  std::promise<void> released;
  worker.post([&] { released.get_future().wait(); });
  const std::string message = large_message();
  client->send_bytes(framed(message));
  ASSERT_TRUE(until([&] { return used() == message.size(); }));
  run_rounds(*loop_);
  EXPECT_EQ(used(), message.size());
  released.set_value();
  ASSERT_TRUE(until([&] { return bodies_.size() == 1; }));
  EXPECT_TRUE(until([&] { return used() == 0; }));
  server_.reset();  // before its thread
}

TEST_F(ClientServerTest, LargeGarbageEndsTheConnection) {
  WorkThread worker(*loop_, "work");
  ClientServerOptions options;
  options.worker = &worker;
  start(options);
  auto client = greeted();
  client->send_bytes(framed(std::string(large_message().size(), 'x')));
  EXPECT_TRUE(closed_with("no message"));
  EXPECT_EQ(server_->counters().protocol_errors, 1u);
  server_.reset();  // before its thread
}

TEST_F(ClientServerTest, AClientMayGoWhileItsMessageIsChecked) {
  WorkThread worker(*loop_, "work");
  ClientServerOptions options;
  options.worker = &worker;
  start(options);
  auto client = greeted();
  std::promise<void> released;
  worker.post([&] { released.get_future().wait(); });
  client->send_bytes(framed(large_message()));
  run_rounds(*loop_);
  connection_->close_after_send();
  EXPECT_TRUE(closed_with("braidd closed the connection"));
  released.set_value();
  bool is_through = false;
  ASSERT_TRUE(worker.run([] {}, [&] { is_through = true; }));
  EXPECT_TRUE(until([&] { return is_through; }));
  EXPECT_TRUE(bodies_.empty());
  server_.reset();  // before its thread
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
