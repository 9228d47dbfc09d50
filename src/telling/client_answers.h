// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "telling/client_queries.h"
#include "telling/job_questions.h"

namespace braid {

// Answers what clients ask: the daemon's status, and everything of JobQuestions. Control loop only.
class ClientAnswers {
 public:
  // Gathers what the I/O loops know, then calls back with what makes the daemon's status, as JSON,
  // for a viewer.
  using StatusMaker = std::function<std::string()>;
  using StatusSource = std::function<void(uid_t viewer, std::function<void(StatusMaker)> told)>;

  // `services` and `questions` outlive it. `find`: a client that is still connected.
  ClientAnswers(const JobServices& services, JobQuestions& questions, ClientQueries::Find find,
                StatusSource status);

  // False: the message is no question.
  bool on_message(ClientConnection& asker, const proto::ClientMessage& message);

 private:
  void ask(ClientConnection& asker, ClientQueries::Question question);
  // Begins to make the answer.
  void make(uid_t viewer, const ClientQueries::Question& question, const ClientQueries::Made& made);
  void make_gathered(uid_t viewer, const ClientQueries::Question& question,
                     const ClientQueries::Made& made);
  void make_explanation(uid_t viewer, const std::string& job_name, const ClientQueries::Made& made);
  ClientQueries::Send json_answer(uid_t viewer, std::string json) const;

  JobQuestions& questions_;
  const StatusSource status_;
  ClientQueries queries_;
};

}  // namespace braid
