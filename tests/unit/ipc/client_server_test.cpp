// SPDX-License-Identifier: Apache-2.0
#include "ipc/client_server.h"

#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/client_connection.h"
#include "loop_runner.h"
#include "proto/version.h"
#include "temporary_directory.h"

namespace braid {
namespace {

// The other end of the socket, in raw: connects, writes bytes and frames, reads frames.
class RawClient {
 public:
  explicit RawClient(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    connected_ =
        ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  bool is_connected() const { return connected_; }
  void send_bytes(const std::string& bytes) {
    EXPECT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  template <typename Body>
  void send(flatbuffers::FlatBufferBuilder& builder, proto::ClientBody type,
            flatbuffers::Offset<Body> body, std::span<const int> fds = {}) {
    builder.Finish(proto::CreateClientMessage(builder, type, body.Union()));
    FrameWriter writer(64 << 20);
    EXPECT_TRUE(writer.push({builder.GetBufferPointer(), builder.GetSize()}, fds));
    EXPECT_TRUE(writer.flush(socket_.get()));
  }
  void send_hello(uint32_t version = proto::kClientProtocolVersion) {
    flatbuffers::FlatBufferBuilder builder;
    send(builder, proto::ClientBody::Hello,
         proto::CreateHelloDirect(builder, version, "9.9.9", "tester"));
  }
  void send_query(std::span<const int> fds = {}) {
    flatbuffers::FlatBufferBuilder builder;
    send(builder, proto::ClientBody::StatusQuery, proto::CreateStatusQuery(builder), fds);
  }
  FrameReader::Outcome read() { return reader_.read(socket_.get(), kFrameBytesMax); }
  Frame take() { return reader_.take(); }
  bool is_closed() {
    const auto outcome = read();
    return outcome == FrameReader::Outcome::EndOfStream || outcome == FrameReader::Outcome::Error;
  }
  void close() { socket_.reset(); }
  int fd() const { return socket_.get(); }

 private:
  Fd socket_;
  bool connected_ = false;
  FrameReader reader_;
};

class ClientServerTest : public ::testing::Test, public ClientHandler {
 protected:
  ClientServerTest() { loop_ = Loop::create("test").value(); }
  ~ClientServerTest() override { server_.reset(); }

  void start(ClientServerOptions options = {}) {
    options.path = path_;
    options.node_name = "node-7";
    options.daemon_version = "1.2.3";
    auto server = ClientServer::create(*loop_, options, *this);
    ASSERT_TRUE(server.is_ok()) << server.status().message();
    server_ = std::move(*server);
  }
  bool until(const std::function<bool()>& is_over) { return run_until(*loop_, is_over); }

  void on_client_connected(ClientConnection& connection) override {
    connection_ = &connection;
    ++connected_;
  }
  void on_client_message(ClientConnection& connection, const proto::ClientMessage& message,
                         std::vector<Fd> fds) override {
    bodies_.push_back(message.body_type());
    fds_ = std::move(fds);
    if (on_message_) on_message_(connection);
  }
  void on_client_closed(ClientConnection&, const Status& reason) override {
    connection_ = nullptr;
    reasons_.push_back(reason);
  }

  // Connected, greeted, and the reply read.
  std::unique_ptr<RawClient> greeted() {
    auto client = std::make_unique<RawClient>(path_);
    const int before = connected_;
    client->send_hello();
    EXPECT_TRUE(until([&] { return connected_ == before + 1; }));
    EXPECT_EQ(client->read(), FrameReader::Outcome::Frame);
    client->take();
    return client;
  }

  bool closed_with(const std::string& part) {
    if (!until([&] { return !reasons_.empty(); })) return false;
    EXPECT_NE(reasons_.back().message().find(part), std::string::npos) << reasons_.back().message();
    return reasons_.size() == 1;
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.file("braidd.sock");
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<ClientServer> server_;
  ClientConnection* connection_ = nullptr;
  int connected_ = 0;
  std::vector<proto::ClientBody> bodies_;
  std::vector<Fd> fds_;
  std::vector<Status> reasons_;
  std::function<void(ClientConnection&)> on_message_;
};

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
  FrameReader::Outcome outcome{};
  ASSERT_TRUE(until([&] { return (outcome = client.read()) != FrameReader::Outcome::WouldBlock; }));
  ASSERT_EQ(outcome, FrameReader::Outcome::Frame);
  const Frame frame = client.take();
  const auto* reply = proto::GetClientMessage(frame.bytes.data())->body_as_HelloReply();
  ASSERT_TRUE(reply != nullptr && reply->error() != nullptr);
  EXPECT_NE(reply->error()->str().find("upgrade braidd"), std::string::npos)
      << reply->error()->str();
  EXPECT_TRUE(until([&] { return client.is_closed(); }));
  EXPECT_TRUE(until([&] { return server_->counters().connections_open == 0; }));
  EXPECT_EQ(connected_, 0);
  EXPECT_TRUE(reasons_.empty());
  EXPECT_EQ(server_->counters().version_mismatches, 1u);
}

TEST_F(ClientServerTest, MessagesCarryDescriptorsBothWays) {
  start();
  auto client = greeted();
  const Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const int fds[] = {event.get(), event.get()};
  client->send_query(fds);
  ASSERT_TRUE(until([&] { return bodies_.size() == 1; }));
  EXPECT_EQ(bodies_[0], proto::ClientBody::StatusQuery);
  ASSERT_EQ(fds_.size(), 2u);
  EXPECT_EQ(::eventfd_write(fds_[1].get(), 5), 0);
  eventfd_t value = 0;
  EXPECT_EQ(::eventfd_read(event.get(), &value), 0);
  EXPECT_EQ(value, 5u);

  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(proto::CreateClientMessage(builder, proto::ClientBody::StatusReply,
                                            proto::CreateStatusReplyDirect(builder, "{}").Union()));
  connection_->send(builder, fds);
  ASSERT_EQ(client->read(), FrameReader::Outcome::Frame);
  EXPECT_EQ(client->take().fds.size(), 2u);
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

TEST_F(ClientServerTest, QueuedFramesGoOutWhenTheClientReads) {
  start();
  auto client = greeted();
  const std::string large(1'000'000, 'x');
  for (int i = 0; i < 8; ++i) {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(
        proto::CreateClientMessage(builder, proto::ClientBody::StatusReply,
                                   proto::CreateStatusReplyDirect(builder, large.c_str()).Union()));
    connection_->send(builder);
  }
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

TEST_F(ClientServerTest, LingeringEnds) {
  ClientServerOptions options;
  options.linger_timeout_ms = 30;
  start(options);
  auto client = greeted();
  const std::string large(1'000'000, 'x');
  for (int i = 0; i < 8; ++i) {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(
        proto::CreateClientMessage(builder, proto::ClientBody::StatusReply,
                                   proto::CreateStatusReplyDirect(builder, large.c_str()).Union()));
    connection_->send(builder);
  }
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
