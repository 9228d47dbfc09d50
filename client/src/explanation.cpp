// SPDX-License-Identifier: Apache-2.0
#include "explanation.h"

#include <cstring>
#include <string>

#include "connection.h"

namespace braid::client {
namespace {

constexpr uint32_t kExplainTimeoutMs = 10'000;

// NotFound: there is nothing to say yet.
Status ask_for_explanation(const std::string& socket_path, const std::string& job_name,
                           uint64_t deadline_ns, std::string& text) {
  Connection connection;
  BRAID_RETURN_IF_ERROR(connection.open(socket_path, deadline_ns));
  flatbuffers::FlatBufferBuilder builder;
  const auto query = proto::CreateExplanationQueryDirect(builder, job_name.c_str());
  builder.Finish(
      proto::CreateClientMessage(builder, proto::ClientBody::ExplanationQuery, query.Union()));
  BRAID_RETURN_IF_ERROR(connection.send(builder));
  Received received;
  if (const Status answered = connection.receive_until(deadline_ns, received); !answered)
    return answered.with_context(fmt::format("job '{}' is not explained", job_name));
  const proto::ExplanationReply* reply = received.message->body_as_ExplanationReply();
  if (reply == nullptr) {
    return make_status(StatusCode::Protocol,
                       "braidd at '{}' answered ExplanationQuery with {}; are libbraid and braidd "
                       "of one version?",
                       socket_path, proto::EnumNameClientBody(received.message->body_type()));
  }
  if (reply->error()->size() != 0) return Status(StatusCode::NotFound, reply->error()->str());
  text = reply->text()->str();
  return {};
}

}  // namespace

Status explain(const char* socket_path, const char* job_name, uint32_t timeout_ms, char* text,
               size_t bytes) {
  if (job_name == nullptr) return Status(StatusCode::InvalidArgument, "job_name is NULL");
  if (text == nullptr) return Status(StatusCode::InvalidArgument, "text is NULL");
  const uint64_t timeout = timeout_ms != 0 ? timeout_ms : kExplainTimeoutMs;
  std::string explanation;
  BRAID_RETURN_IF_ERROR(ask_for_explanation(socket_path_of(socket_path), job_name,
                                            now_ns() + timeout * 1'000'000, explanation));
  if (explanation.size() >= bytes) {
    return make_status(StatusCode::InvalidArgument, "text has {} bytes; the explanation takes {}",
                       bytes, explanation.size() + 1);
  }
  std::memcpy(text, explanation.c_str(), explanation.size() + 1);
  return {};
}

}  // namespace braid::client
