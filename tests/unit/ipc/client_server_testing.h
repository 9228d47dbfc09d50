// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ipc/client_connection.h"
#include "ipc/client_server.h"
#include "loop_runner.h"
#include "proto/version.h"
#include "temporary_directory.h"
#include "unix_socket.h"

namespace braid {

// Sends `bytes`, and the descriptors with the first of them.
inline void send_with(int socket, std::string bytes, std::span<const int> fds, int flags = 0) {
  iovec part{bytes.data(), bytes.size()};
  std::vector<char> control(CMSG_SPACE(fds.size_bytes()));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  ASSERT_EQ(::sendmsg(socket, &message, flags | MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

// The other end of the socket, in raw: connects, writes bytes and frames, reads frames.
class RawClient {
 public:
  explicit RawClient(const std::string& path) : socket_(connected_socket(path)) {}
  bool is_connected() const { return socket_.is_valid(); }
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
  void send_hello(uint32_t version = proto::kClientProtocolVersion, std::span<const int> fds = {}) {
    flatbuffers::FlatBufferBuilder builder;
    send(builder, proto::ClientBody::Hello,
         proto::CreateHelloDirect(builder, version, "9.9.9", "tester"), fds);
  }
  void send_query(std::span<const int> fds = {}) {
    flatbuffers::FlatBufferBuilder builder;
    send(builder, proto::ClientBody::StatusQuery, proto::CreateStatusQuery(builder), fds);
  }
  void send_open_job(std::span<const int> fds) {
    flatbuffers::FlatBufferBuilder builder;
    send(builder, proto::ClientBody::OpenJob,
         proto::CreateOpenJobDirect(builder, "job", 0, 1, "127.0.0.1"), fds);
  }
  void send_memory(std::span<const int> fds) {
    flatbuffers::FlatBufferBuilder builder;
    send(builder, proto::ClientBody::RegisterMemory, proto::CreateRegisterMemory(builder, 4096),
         fds);
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

  void send_reply(const std::string& text, std::span<const int> fds = {}) {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(
        proto::CreateClientMessage(builder, proto::ClientBody::StatusReply,
                                   proto::CreateStatusReplyDirect(builder, text.c_str()).Union()));
    connection_->send(builder, fds);
  }

  // More than the socket takes before the client reads.
  void send_large_frames(int count) {
    for (int i = 0; i < count; ++i) send_reply(std::string(1'000'000, 'x'));
  }

  // What the client is told before its connection ends.
  std::string refusal(RawClient& client) {
    FrameReader::Outcome outcome{};
    EXPECT_TRUE(
        until([&] { return (outcome = client.read()) != FrameReader::Outcome::WouldBlock; }));
    if (outcome != FrameReader::Outcome::Frame) return "no answer";
    const Frame frame = client.take();
    EXPECT_TRUE(until([&] { return client.is_closed(); }));
    const auto* message = proto::GetClientMessage(frame.bytes.data());
    const auto* failure = message->body_as_Failure();
    const auto* reply = message->body_as_HelloReply();
    const auto* text = failure != nullptr ? failure->text()
                       : reply != nullptr ? reply->error()
                                          : nullptr;
    return text == nullptr ? "no refusal" : text->str();
  }

  // Starts with limits for each user.
  void start(const UserLimits& limits, ClientServerOptions options = {}) {
    quotas_ = options.quotas = std::make_shared<UserQuotas>(limits, std::set<uid_t>{});
    start(options);
  }
  uint64_t used(UserResource resource) const { return quotas_->used(::geteuid(), resource); }

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
  std::shared_ptr<UserQuotas> quotas_;
};

}  // namespace braid
