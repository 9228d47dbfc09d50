// SPDX-License-Identifier: Apache-2.0
#include "client/status_client.h"

#include <cstdlib>

#include "connection.h"

namespace braid {
namespace {

constexpr const char* kDefaultSocketPath = "/run/braid/braidd.sock";

// Sends what `make_body` builds and returns the StatusReply to it.
template <typename MakeBody>
Result<JobsReply> query(const std::string& socket_path, uint32_t timeout_ms, proto::ClientBody type,
                        MakeBody make_body) {
  JobsReply whole;
  const uint64_t deadline_ns = client::now_ns() + timeout_ms * 1'000'000ull;
  client::Connection connection;
  BRAID_RETURN_IF_ERROR(connection.open(socket_path, deadline_ns));

  flatbuffers::FlatBufferBuilder builder;
  const flatbuffers::Offset<void> body = make_body(builder);
  builder.Finish(proto::CreateClientMessage(builder, type, body));
  BRAID_RETURN_IF_ERROR(connection.send(builder));

  for (bool has_more = true; has_more;) {
    client::Received received;
    BRAID_RETURN_IF_ERROR(connection.receive_until(deadline_ns, received));
    const proto::StatusReply* reply = received.message->body_as_StatusReply();
    if (reply == nullptr) {
      return make_status(StatusCode::Protocol, "braidd at '{}' answered {} with {}", socket_path,
                         proto::EnumNameClientBody(type),
                         proto::EnumNameClientBody(received.message->body_type()));
    }
    whole.json += reply->json()->string_view();
    whole.jobs_hidden = reply->jobs_hidden();
    has_more = reply->more();
  }
  return whole;
}

}  // namespace

std::string daemon_socket_path(const std::string& given) {
  if (!given.empty()) return given;
  const char* path = std::getenv("BRAID_SOCKET");
  return path != nullptr && *path != '\0' ? path : kDefaultSocketPath;
}

Result<std::string> query_status(const std::string& socket_path, uint32_t timeout_ms) {
  auto reply = query(socket_path, timeout_ms, proto::ClientBody::StatusQuery,
                     [](flatbuffers::FlatBufferBuilder& builder) {
                       return proto::CreateStatusQuery(builder).Union();
                     });
  if (!reply) return reply.status();
  return std::move(reply->json);
}

Result<JobsReply> query_plans(const std::string& socket_path, const std::string& job_name,
                              uint32_t timeout_ms) {
  return query(socket_path, timeout_ms, proto::ClientBody::PlanQuery,
               [&job_name](flatbuffers::FlatBufferBuilder& builder) {
                 return proto::CreatePlanQueryDirect(builder, job_name.c_str()).Union();
               });
}

Result<JobsReply> query_facts(const std::string& socket_path, const std::string& job_name,
                              uint32_t timeout_ms) {
  return query(socket_path, timeout_ms, proto::ClientBody::ExplainQuery,
               [&job_name](flatbuffers::FlatBufferBuilder& builder) {
                 return proto::CreateExplainQueryDirect(builder, job_name.c_str()).Union();
               });
}

Result<JobsReply> query_timelines(const std::string& socket_path, const std::string& job_name,
                                  uint32_t steps, uint32_t timeout_ms) {
  return query(socket_path, timeout_ms, proto::ClientBody::TimelineQuery,
               [&](flatbuffers::FlatBufferBuilder& builder) {
                 return proto::CreateTimelineQueryDirect(builder, job_name.c_str(), steps).Union();
               });
}

Result<JobsReply> query_tuning(const std::string& socket_path, const std::string& job_name,
                               uint32_t timeout_ms) {
  return query(socket_path, timeout_ms, proto::ClientBody::TuneQuery,
               [&job_name](flatbuffers::FlatBufferBuilder& builder) {
                 return proto::CreateTuneQueryDirect(builder, job_name.c_str()).Union();
               });
}

}  // namespace braid
