// SPDX-License-Identifier: Apache-2.0
#include "client/status_client.h"

#include <functional>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "ipc/temporary_directory.h"
#include "ipc/unix_socket.h"
#include "proto/client_generated.h"
#include "proto/version.h"

namespace braid {
namespace {

constexpr uint32_t kPatientMs = 30'000;
constexpr uint32_t kImpatientMs = 100;

void write_frame(int socket, const std::vector<uint8_t>& body) {
  const auto length = static_cast<uint32_t>(body.size());
  std::vector<uint8_t> frame(sizeof(length) + body.size());
  std::memcpy(frame.data(), &length, sizeof(length));
  std::memcpy(frame.data() + sizeof(length), body.data(), body.size());
  ASSERT_EQ(::send(socket, frame.data(), frame.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(frame.size()));
}

// The body of the next frame; empty when the client has gone.
std::vector<uint8_t> read_frame(int socket) {
  uint32_t length = 0;
  if (::recv(socket, &length, sizeof(length), MSG_WAITALL) != sizeof(length)) return {};
  std::vector<uint8_t> body(length);
  if (::recv(socket, body.data(), length, MSG_WAITALL) != static_cast<ssize_t>(length)) return {};
  return body;
}

template <typename Body>
std::vector<uint8_t> message(flatbuffers::FlatBufferBuilder& builder, proto::ClientBody type,
                             Body body) {
  builder.Finish(proto::CreateClientMessage(builder, type, body.Union()));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

std::vector<uint8_t> hello_reply(uint32_t version = proto::kClientProtocolVersion) {
  flatbuffers::FlatBufferBuilder builder;
  const auto body = proto::CreateHelloReplyDirect(builder, version, "9.9", "node-x");
  return message(builder, proto::ClientBody::HelloReply, body);
}

std::vector<uint8_t> status_reply(const std::string& json) {
  flatbuffers::FlatBufferBuilder builder;
  const auto body = proto::CreateStatusReplyDirect(builder, json.c_str());
  return message(builder, proto::ClientBody::StatusReply, body);
}

// Takes the client's Hello and answers it; the client's question.
std::vector<uint8_t> greet(int client) {
  read_frame(client);
  write_frame(client, hello_reply());
  return read_frame(client);
}

void read_to_the_end(int client) {
  while (!read_frame(client).empty()) {
  }
}

// A socket that accepts one client and lets `serve` talk with it.
class FakeDaemon {
 public:
  explicit FakeDaemon(std::function<void(int)> serve) {
    thread_ = std::thread([this, serve = std::move(serve)] {
      const Fd client(::accept(listener_.get(), nullptr, nullptr));
      if (client.is_valid()) serve(client.get());
    });
  }
  ~FakeDaemon() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::string path() const { return directory_.file("s"); }

 private:
  const TemporaryDirectory directory_;
  const Fd listener_ = listening_socket(path());
  std::thread thread_;
};

TEST(QueryStatus, ReturnsWhatTheDaemonSays) {
  const FakeDaemon daemon([](int client) {
    const auto hello = read_frame(client);
    ASSERT_FALSE(hello.empty());
    EXPECT_EQ(proto::GetClientMessage(hello.data())->body_type(), proto::ClientBody::Hello);
    write_frame(client, hello_reply());
    const auto query = read_frame(client);
    ASSERT_FALSE(query.empty());
    EXPECT_EQ(proto::GetClientMessage(query.data())->body_type(), proto::ClientBody::StatusQuery);
    write_frame(client, status_reply("{\"version\":\"9.9\"}"));
  });
  const auto json = query_status(daemon.path(), kPatientMs).value();
  EXPECT_EQ(json, "{\"version\":\"9.9\"}");
}

TEST(QueryPlans, NamesTheJob) {
  const FakeDaemon daemon([](int client) {
    const auto query = greet(client);
    ASSERT_FALSE(query.empty());
    const auto* body = proto::GetClientMessage(query.data())->body_as_PlanQuery();
    ASSERT_NE(body, nullptr);
    EXPECT_EQ(body->job()->str(), "train");
    write_frame(client, status_reply("[]"));
  });
  const auto reply = query_plans(daemon.path(), "train", kPatientMs).value();
  EXPECT_EQ(reply.json, "[]");
  EXPECT_EQ(reply.jobs_hidden, 0u);
}

TEST(QueryStatus, WithoutADaemonNamesPathAndVariable) {
  const auto json = query_status("/nonexistent/braidd.sock", kPatientMs);
  ASSERT_FALSE(json.is_ok());
  EXPECT_EQ(json.status().code(), StatusCode::Unavailable);
  EXPECT_NE(json.status().message().find("/nonexistent/braidd.sock"), std::string::npos);
  EXPECT_NE(json.status().message().find("BRAID_SOCKET"), std::string::npos);
}

TEST(QueryStatus, ADaemonThatDoesNotAnswerAsItShouldIsAnError) {
  struct {
    std::function<void(int)> serve;
    StatusCode code;
  } const cases[] = {
      {read_to_the_end, StatusCode::DeadlineExceeded},
      {[](int client) { greet(client), read_to_the_end(client); }, StatusCode::DeadlineExceeded},
      {[](int client) { greet(client); }, StatusCode::Unavailable},  // hangs up
      {[](int client) { greet(client), write_frame(client, hello_reply()); }, StatusCode::Protocol},
      {[](int client) {
         read_frame(client);
         write_frame(client, hello_reply(proto::kClientProtocolVersion + 1));
       },
       StatusCode::Protocol},
      {[](int client) {
         read_frame(client);
         write_frame(client, {1, 2, 3, 4, 5, 6, 7, 8});
       },
       StatusCode::Protocol}};
  for (const auto& [serve, code] : cases) {
    const FakeDaemon daemon(serve);
    const bool is_silent = code == StatusCode::DeadlineExceeded;
    const auto json = query_status(daemon.path(), is_silent ? kImpatientMs : kPatientMs);
    ASSERT_FALSE(json.is_ok());
    EXPECT_EQ(json.status().code(), code) << json.status().message();
  }
}

TEST(DaemonSocketPath, PrefersWhatIsGivenThenTheVariable) {
  ::setenv("BRAID_SOCKET", "/tmp/variable.sock", 1);
  EXPECT_EQ(daemon_socket_path("/tmp/given.sock"), "/tmp/given.sock");
  EXPECT_EQ(daemon_socket_path(""), "/tmp/variable.sock");
  ::setenv("BRAID_SOCKET", "", 1);
  EXPECT_EQ(daemon_socket_path(""), "/run/braid/braidd.sock");
  ::unsetenv("BRAID_SOCKET");
  EXPECT_EQ(daemon_socket_path(""), "/run/braid/braidd.sock");
}

}  // namespace
}  // namespace braid
