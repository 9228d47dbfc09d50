// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client_server_testing.h"

namespace braid {
namespace {

TEST_F(ClientServerTest, ShakesHandsAndKnowsItsPeer) {
  start();
  RawClient client(path_);
  client.send_hello();
  ASSERT_TRUE(until([&] { return connected_ == 1; }));
  EXPECT_EQ(connection_->credentials().pid, ::getpid());
  EXPECT_EQ(connection_->credentials().uid, ::getuid());
  EXPECT_EQ(connection_->credentials().gid, ::getgid());
  EXPECT_EQ(connection_->process_name(), "tester");
  EXPECT_EQ(connection_->library_version(), "9.9.9");
  ASSERT_EQ(client.read(), FrameReader::Outcome::Frame);
  const Frame frame = client.take();
  const auto* reply = proto::GetClientMessage(frame.bytes.data())->body_as_HelloReply();
  ASSERT_NE(reply, nullptr);
  EXPECT_EQ(reply->protocol_version(), proto::kClientProtocolVersion);
  EXPECT_EQ(reply->daemon_version()->str(), "1.2.3");
  EXPECT_EQ(reply->node_name()->str(), "node-7");
  EXPECT_EQ(reply->error(), nullptr);
  EXPECT_EQ(server_->counters().connections_open, 1u);
}

TEST_F(ClientServerTest, AnotherVersionIsToldWhatToUpgrade) {
  start();
  RawClient client(path_);
  client.send_hello(proto::kClientProtocolVersion + 1);
  EXPECT_NE(refusal(client).find("upgrade braidd"), std::string::npos);
  EXPECT_TRUE(until([&] { return server_->counters().connections_open == 0; }));
  EXPECT_EQ(connected_, 0);
  EXPECT_TRUE(reasons_.empty());
  EXPECT_EQ(server_->counters().version_mismatches, 1u);
}

TEST_F(ClientServerTest, MessagesCarryDescriptorsBothWays) {
  start();
  auto client = greeted();
  const Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const Fd memory(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const int fds[] = {memory.get(), memory.get(), event.get()};
  client->send_open_job(fds);
  ASSERT_TRUE(until([&] { return bodies_.size() == 1; }));
  EXPECT_EQ(bodies_[0], proto::ClientBody::OpenJob);
  ASSERT_EQ(fds_.size(), 3u);
  EXPECT_EQ(::eventfd_write(fds_[2].get(), 5), 0);
  eventfd_t value = 0;
  EXPECT_EQ(::eventfd_read(event.get(), &value), 0);
  EXPECT_EQ(value, 5u);

  send_reply("{}", fds);
  ASSERT_EQ(client->read(), FrameReader::Outcome::Frame);
  EXPECT_EQ(client->take().fds.size(), 3u);
}

TEST_F(ClientServerTest, AClientThatCannotBeSentADescriptorIsToldWhy) {
  start();
  auto client = greeted();
  const int none[] = {-1};
  send_reply("{}", none);
  const std::string text = refusal(*client);
  for (const char* part : {"'node-7'", "cannot duplicate a descriptor"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_TRUE(until([&] { return reasons_.size() == 1; }));
}

TEST_F(ClientServerTest, CloseAfterSendSendsAndThenTellsOnce) {
  start();
  auto client = greeted();
  on_message_ = [](ClientConnection& connection) {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(proto::CreateClientMessage(builder, proto::ClientBody::JobLeft,
                                              proto::CreateJobLeft(builder).Union()));
    connection.send(builder);
    connection.close_after_send();
    connection.close_after_send();
  };
  client->send_query();
  EXPECT_TRUE(closed_with("braidd closed"));
  EXPECT_EQ(client->read(), FrameReader::Outcome::Frame);
  EXPECT_TRUE(client->is_closed());
  EXPECT_EQ(server_->counters().connections_open, 0u);
}

TEST_F(ClientServerTest, LingeringEnds) {
  ClientServerOptions options;
  options.linger_timeout_ms = 30;
  start(options);
  auto client = greeted();
  send_large_frames(8);
  connection_->close_after_send();
  EXPECT_TRUE(closed_with("braidd closed"));
}

TEST_F(ClientServerTest, MessagesBeforeTheEndAreHeard) {
  start();
  auto client = greeted();
  client->send_query();
  client->send_query();
  client->close();
  EXPECT_TRUE(closed_with("closed the connection"));
  EXPECT_EQ(bodies_.size(), 2u);
}

TEST_F(ClientServerTest, StopAcceptingKeepsWhatIsOpen) {
  start();
  auto client = greeted();
  server_->stop_accepting();
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_FALSE(RawClient(path_).is_connected());
  client->send_query();
  EXPECT_TRUE(until([&] { return bodies_.size() == 1; }));
}

TEST_F(ClientServerTest, TheSocketIsRemovedWithTheServer) {
  start();
  auto client = greeted();
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_TRUE(client->is_closed());
  EXPECT_TRUE(reasons_.empty());
  run_rounds(*loop_);
}

TEST_F(ClientServerTest, ASecondServerIsRefused) {
  start();
  ClientServerOptions options;
  options.path = path_;
  const auto second = ClientServer::create(*loop_, options, *this);
  ASSERT_FALSE(second.is_ok());
  EXPECT_EQ(second.status().code(), StatusCode::AlreadyExists);
}

// The trainer is killed, but a child that it had forked still holds the socket.
TEST_F(ClientServerTest, TheDeathOfAForkingProcessIsSeen) {
  start();
  int hold[2];
  int ready[2];
  ASSERT_EQ(::pipe(hold), 0);
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t trainer = ::fork();
  if (trainer == 0) {
    ::close(hold[1]);
    RawClient client(path_);
    client.send_hello();
    if (::fork() == 0) {
      char byte = 0;
      [[maybe_unused]] ssize_t ended = ::write(ready[1], "x", 1);
      ended = ::read(hold[0], &byte, 1);  // until the test is over
      ::_exit(0);
    }
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_TRUE(until([&] { return connected_ == 1; }));
  EXPECT_EQ(connection_->credentials().pid, trainer);
  EXPECT_TRUE(reasons_.empty());
  ASSERT_EQ(::kill(trainer, SIGKILL), 0);
  EXPECT_TRUE(closed_with("process " + std::to_string(trainer) + " ('tester') died"));
  EXPECT_EQ(::waitpid(trainer, nullptr, 0), trainer);
  for (const int fd : {hold[0], hold[1], ready[0], ready[1]}) ::close(fd);
}

// A process that dies closes its sockets a moment before it counts as dead; the reason must not
// depend on that.
TEST_F(ClientServerTest, TheDeathOfAPlainProcessIsCalledThat) {
  start();
  const pid_t trainer = ::fork();
  if (trainer == 0) {
    RawClient client(path_);
    client.send_hello();
    ::pause();
    ::_exit(0);
  }
  ASSERT_TRUE(until([&] { return connected_ == 1; }));
  ASSERT_EQ(::kill(trainer, SIGKILL), 0);
  EXPECT_TRUE(closed_with("died"));
  EXPECT_EQ(::waitpid(trainer, nullptr, 0), trainer);
}

}  // namespace
}  // namespace braid
