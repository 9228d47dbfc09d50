// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "job/job_manager.h"
#include "job/job_teller.h"
#include "telling/check_answers.h"
#include "telling/client_answers.h"
#include "telling/job_questions.h"

namespace braid {

// What a node tells of its jobs, to clients, to other nodes and to the daemon itself. Destroyed
// before the JobManager. Control loop only.
class Telling final : public JobTeller {
 public:
  // `jobs` has its services; `checks` outlives it. `find`: a client that is still connected.
  Telling(JobManager& jobs, PathChecks& checks, TellingOptions options,
          const ClientQueries::Find& find, ClientAnswers::StatusSource status)
      : jobs_(jobs),
        checks_(checks),
        questions_(jobs.services(), jobs.jobs(), jobs.coordinator(), jobs.maker(),
                   std::move(options)),
        answers_(jobs.services(), questions_, find, std::move(status)),
        check_answers_(checks, find) {
    jobs_.set_teller(this);
  }
  ~Telling() override { jobs_.set_teller(nullptr); }

  JobQuestions& questions() { return questions_; }

  bool on_client_message(ClientConnection& asker, const proto::ClientMessage& message) override {
    if (message.body_type() != proto::ClientBody::PathCheck)
      return answers_.on_message(asker, message);
    check_answers_.on_query(asker, *message.body_as_PathCheck());
    return true;
  }
  bool on_control_message(const Peer& from, const proto::ControlMessage& message) override {
    return questions_.on_control_message(from, message) ||
           checks_.on_control_message(from, message);
  }
  void on_job_began(const Job& job) override { questions_.on_job_began(job); }
  void on_job_failed(const Job& job, const Status& reason) override {
    questions_.on_job_failed(job, reason);
  }
  void on_job_over(uint64_t key) override { questions_.on_job_over(key); }

 private:
  JobManager& jobs_;
  PathChecks& checks_;
  JobQuestions questions_;
  ClientAnswers answers_;
  CheckAnswers check_answers_;
};

}  // namespace braid
