// SPDX-License-Identifier: Apache-2.0
#include "questions.h"

#include <cstring>
#include <string>

#include "connection.h"

namespace braid::client {
namespace {

constexpr uint32_t kQuestionTimeoutMs = 10'000;

uint64_t question_deadline_ns(uint32_t timeout_ms) {
  return now_ns() + (timeout_ms != 0 ? timeout_ms : kQuestionTimeoutMs) * 1'000'000ull;
}

// Into what the caller has for it.
Status copy_answer(const std::string& answer, const char* field, char* out, size_t bytes) {
  if (answer.size() >= bytes) {
    return make_status(StatusCode::InvalidArgument, "{} has {} bytes; the answer takes {}", field,
                       bytes, answer.size() + 1);
  }
  std::memcpy(out, answer.c_str(), answer.size() + 1);
  return {};
}

Status not_answered(const std::string& socket_path, const char* question, const Received& answer) {
  return make_status(StatusCode::Protocol,
                     "braidd at '{}' answered {} with {}; are libbraid and braidd of one version?",
                     socket_path, question, proto::EnumNameClientBody(answer.message->body_type()));
}

// NotFound: there is nothing to say yet.
Status ask_for_explanation(const std::string& socket_path, const std::string& job_name,
                           uint64_t deadline_ns, std::string& text) {
  Connection connection;
  BRAID_RETURN_IF_ERROR(connection.open(socket_path, deadline_ns));
  flatbuffers::FlatBufferBuilder builder;
  BRAID_RETURN_IF_ERROR(
      connection.send(builder, proto::CreateExplanationQueryDirect(builder, job_name.c_str())));
  Received received;
  if (const Status answered = connection.receive_until(deadline_ns, received); !answered)
    return answered.with_context(fmt::format("job '{}' is not explained", job_name));
  const proto::ExplanationReply* reply = received.message->body_as_ExplanationReply();
  if (reply == nullptr) return not_answered(socket_path, "ExplanationQuery", received);
  if (reply->error()->size() != 0) return Status(StatusCode::NotFound, reply->error()->str());
  text = reply->text()->str();
  return {};
}

}  // namespace

Status find_master(const char* socket_path, uint32_t timeout_ms, char* address, size_t bytes,
                   uint64_t* node) {
  if (address == nullptr) return Status(StatusCode::InvalidArgument, "address is NULL");
  if (node == nullptr) return Status(StatusCode::InvalidArgument, "node is NULL");
  Connection connection;
  BRAID_RETURN_IF_ERROR(
      connection.open(socket_path_of(socket_path), question_deadline_ns(timeout_ms)));
  const std::string& found = connection.daemon_address();
  if (found.empty()) {
    return make_status(StatusCode::NotFound,
                       "braidd at '{}' is too old to say where other nodes reach it: upgrade it",
                       connection.path());
  }
  BRAID_RETURN_IF_ERROR(copy_answer(found, "address", address, bytes));
  *node = connection.daemon_node();
  return {};
}

Status name_job(const char* socket_path, const char* wanted, uint32_t timeout_ms, char* name,
                size_t bytes) {
  if (wanted == nullptr) return Status(StatusCode::InvalidArgument, "wanted is NULL");
  if (name == nullptr) return Status(StatusCode::InvalidArgument, "name is NULL");
  const uint64_t deadline_ns = question_deadline_ns(timeout_ms);
  Connection connection;
  BRAID_RETURN_IF_ERROR(connection.open(socket_path_of(socket_path), deadline_ns));
  flatbuffers::FlatBufferBuilder builder;
  BRAID_RETURN_IF_ERROR(connection.send(builder, proto::CreateNameQueryDirect(builder, wanted)));
  Received received;
  BRAID_RETURN_IF_ERROR(connection.receive_until(deadline_ns, received));
  const proto::NameReply* reply = received.message->body_as_NameReply();
  if (reply == nullptr) return not_answered(connection.path(), "NameQuery", received);
  return copy_answer(reply->job()->str(), "name", name, bytes);
}

Status explain(const char* socket_path, const char* job_name, uint32_t timeout_ms, char* text,
               size_t bytes) {
  if (job_name == nullptr) return Status(StatusCode::InvalidArgument, "job_name is NULL");
  if (text == nullptr) return Status(StatusCode::InvalidArgument, "text is NULL");
  std::string explanation;
  BRAID_RETURN_IF_ERROR(ask_for_explanation(socket_path_of(socket_path), job_name,
                                            question_deadline_ns(timeout_ms), explanation));
  return copy_answer(explanation, "text", text, bytes);
}

}  // namespace braid::client
