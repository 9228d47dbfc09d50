// SPDX-License-Identifier: Apache-2.0
#include "telling/client_answers.h"

#include <algorithm>

#include <unistd.h>

#include "job/client_body.h"

namespace braid {
namespace {

ClientQueries::Send refusal(Status reason) {
  return [reason = std::move(reason)](ClientConnection& asker, uint32_t) {
    refuse_client(asker, reason);
    return false;
  };
}

ClientQueries::Send explanation_answer(const Result<Explanation>& explanation) {
  return [text = explanation ? explanation_text(*explanation) : "",
          json = explanation ? to_json(*explanation) : "",
          error = explanation ? "" : explanation.status().message()](ClientConnection& asker,
                                                                     uint32_t) {
    flatbuffers::FlatBufferBuilder builder;
    send_body(
        asker, builder,
        proto::CreateExplanationReplyDirect(builder, text.c_str(), json.c_str(), error.c_str()));
    return false;
  };
}

}  // namespace

ClientAnswers::ClientAnswers(const JobServices& services, JobQuestions& questions,
                             ClientQueries::Find find, StatusSource status)
    : questions_(questions),
      status_(std::move(status)),
      queries_(services.loop, services.clock, services.quotas, std::move(find),
               [this](uid_t viewer, const ClientQueries::Question& question,
                      const ClientQueries::Made& made) { make(viewer, question, made); }) {}

bool ClientAnswers::on_message(ClientConnection& asker, const proto::ClientMessage& message) {
  using Kind = ClientQueries::Kind;
  switch (message.body_type()) {
    case proto::ClientBody::StatusQuery:
      ask(asker, {Kind::Status, ""});
      return true;
    case proto::ClientBody::PlanQuery:
      ask(asker, {Kind::Plan, message.body_as_PlanQuery()->job()->str()});
      return true;
    case proto::ClientBody::TuneQuery:
      ask(asker, {Kind::Tune, message.body_as_TuneQuery()->job()->str()});
      return true;
    case proto::ClientBody::ExplainQuery:
      ask(asker, {Kind::Facts, message.body_as_ExplainQuery()->job()->str()});
      return true;
    case proto::ClientBody::TimelineQuery: {
      const proto::TimelineQuery& query = *message.body_as_TimelineQuery();
      ask(asker, {Kind::Timeline, query.job()->str(),
                  std::clamp(query.steps(), 1U, NodeQueries::kStepsMax)});
      return true;
    }
    case proto::ClientBody::ExplanationQuery:
      ask(asker, {Kind::Explanation, message.body_as_ExplanationQuery()->job()->str()});
      return true;
    default:
      return false;
  }
}

void ClientAnswers::ask(ClientConnection& asker, ClientQueries::Question question) {
  // Questions wait, so what is in them does.
  if (question.job.size() > OpenRequest::kJobNameBytesMax) {
    return refuse_client(
        asker, make_status(StatusCode::InvalidArgument, "a job's name has {} bytes at most, not {}",
                           OpenRequest::kJobNameBytesMax, question.job.size()));
  }
  const uid_t user = asker.credentials().uid;
  const bool sees_all = user == ::geteuid();
  const Status taken = queries_.ask(asker.id(), user, sees_all ? ClientQueries::kSeesAll : user,
                                    std::move(question));
  if (!taken) refuse_client(asker, taken);
}

void ClientAnswers::make(uid_t viewer, const ClientQueries::Question& question,
                         const ClientQueries::Made& made) {
  switch (question.kind) {
    case ClientQueries::Kind::Status:
      return status_(viewer, [this, viewer, made](StatusMaker status) {
        made([this, viewer, status = std::move(status)] { return json_answer(viewer, status()); },
             0);
      });
    case ClientQueries::Kind::Plan:
      return questions_.plans(
          question.job, viewer, [this, viewer, made](Result<std::string> json, uint64_t work_ns) {
            const auto told = std::make_shared<Result<std::string>>(std::move(json));
            made(
                [this, viewer, told] {
                  return *told ? json_answer(viewer, std::move(**told)) : refusal(told->status());
                },
                work_ns);
          });
    case ClientQueries::Kind::Tune:
      return made(
          [this, viewer, name = question.job] {
            return json_answer(viewer, questions_.tuning(name, viewer));
          },
          0);
    case ClientQueries::Kind::Facts:
    case ClientQueries::Kind::Timeline:
      return make_gathered(viewer, question, made);
    case ClientQueries::Kind::Explanation:
      return make_explanation(viewer, question.job, made);
  }
}

void ClientAnswers::make_gathered(uid_t viewer, const ClientQueries::Question& question,
                                  const ClientQueries::Made& made) {
  const Status is_asked = questions_.gather(
      question.job, viewer, question.steps, [this, viewer, made](std::string json) {
        const auto text = std::make_shared<std::string>(std::move(json));
        made([this, viewer, text] { return json_answer(viewer, std::move(*text)); }, 0);
      });
  if (!is_asked) made([is_asked] { return refusal(is_asked); }, 0);
}

void ClientAnswers::make_explanation(uid_t viewer, const std::string& job_name,
                                     const ClientQueries::Made& made) {
  const auto told = [made](const Result<Explanation>& explanation) {
    made([explanation] { return explanation_answer(explanation); }, 0);
  };
  const Status asked = questions_.explain(job_name, viewer, told);
  if (!asked) told(asked);
}

// In parts, for a long text is much to copy at once.
ClientQueries::Send ClientAnswers::json_answer(uid_t viewer, std::string json) const {
  return [json = std::make_shared<const std::string>(std::move(json)),
          hidden = questions_.hidden_from(viewer)](ClientConnection& asker, uint32_t part) {
    constexpr size_t kBytes = PartedAnswers::kPartBytes;
    const std::string_view text = std::string_view(*json).substr(part * kBytes, kBytes);
    const bool has_more = (part + 1) * kBytes < json->size();
    flatbuffers::FlatBufferBuilder builder(text.size() + 128);
    send_body(asker, builder,
              proto::CreateStatusReply(builder, builder.CreateString(text), hidden, has_more));
    return has_more;
  };
}

}  // namespace braid
