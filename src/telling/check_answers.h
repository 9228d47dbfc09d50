// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "check/path_checks.h"
#include "telling/client_queries.h"

namespace braid {

// Answers PathCheck, the question of `braidctl check`, for root and the daemon's own user: a check
// makes two daemons send. Control loop only.
class CheckAnswers {
 public:
  // `checks` outlives it. `find`: a client that is still connected.
  CheckAnswers(PathChecks& checks, ClientQueries::Find find)
      : checks_(checks), find_(std::move(find)) {}

  void on_query(ClientConnection& asker, const proto::PathCheck& query);

 private:
  PathChecks& checks_;
  const ClientQueries::Find find_;
  Lifetime lifetime_;
};

}  // namespace braid
