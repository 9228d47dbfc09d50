// SPDX-License-Identifier: Apache-2.0
#include "client/status_client.h"

#include "connection.h"

namespace braid {
namespace {

// Sends what `make_question` builds and returns the StatusReply to it.
template <typename MakeQuestion>
Result<JobsReply> query(const std::string& socket_path, uint32_t timeout_ms,
                        MakeQuestion make_question) {
  JobsReply whole;
  const uint64_t deadline_ns = client::now_ns() + timeout_ms * 1'000'000ull;
  client::Connection connection;
  BRAID_RETURN_IF_ERROR(connection.open(socket_path, deadline_ns));

  flatbuffers::FlatBufferBuilder builder;
  BRAID_RETURN_IF_ERROR(connection.send(builder, make_question(builder)));

  for (bool has_more = true; has_more;) {
    client::Received received;
    BRAID_RETURN_IF_ERROR(connection.receive_until(deadline_ns, received));
    if (const auto* failure = received.message->body_as_Failure(); failure != nullptr) {
      return Status(StatusCode::Unavailable,
                    failure->text() == nullptr ? "it gives no reason" : failure->text()->str())
          .with_context(fmt::format("braidd at '{}' refuses", socket_path));
    }
    const proto::StatusReply* reply = received.message->body_as_StatusReply();
    if (reply == nullptr) {
      return make_status(StatusCode::Protocol, "braidd at '{}' answered {} with {}", socket_path,
                         proto::EnumNameClientBody(
                             proto::GetClientMessage(builder.GetBufferPointer())->body_type()),
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
  return client::socket_path_of(given.empty() ? nullptr : given.c_str());
}

Result<std::string> query_status(const std::string& socket_path, uint32_t timeout_ms) {
  auto reply = query(socket_path, timeout_ms,
                     [](auto& builder) { return proto::CreateStatusQuery(builder); });
  if (!reply) return reply.status();
  return std::move(reply->json);
}

Result<JobsReply> query_plans(const std::string& socket_path, const std::string& job_name,
                              uint32_t timeout_ms) {
  return query(socket_path, timeout_ms, [&job_name](auto& builder) {
    return proto::CreatePlanQueryDirect(builder, job_name.c_str());
  });
}

Result<JobsReply> query_facts(const std::string& socket_path, const std::string& job_name,
                              uint32_t timeout_ms) {
  return query(socket_path, timeout_ms, [&job_name](auto& builder) {
    return proto::CreateExplainQueryDirect(builder, job_name.c_str());
  });
}

Result<JobsReply> query_timelines(const std::string& socket_path, const std::string& job_name,
                                  uint32_t steps, uint32_t timeout_ms) {
  return query(socket_path, timeout_ms, [&](auto& builder) {
    return proto::CreateTimelineQueryDirect(builder, job_name.c_str(), steps);
  });
}

Result<JobsReply> query_tuning(const std::string& socket_path, const std::string& job_name,
                               uint32_t timeout_ms) {
  return query(socket_path, timeout_ms, [&job_name](auto& builder) {
    return proto::CreateTuneQueryDirect(builder, job_name.c_str());
  });
}

Result<std::string> query_path(const std::string& socket_path, const std::string& host,
                               uint16_t port, uint32_t measure_ms, uint32_t timeout_ms) {
  auto reply = query(socket_path, timeout_ms, [&](auto& builder) {
    return proto::CreatePathCheckDirect(builder, host.c_str(), port, measure_ms);
  });
  if (!reply) return reply.status();
  return std::move(reply->json);
}

}  // namespace braid
