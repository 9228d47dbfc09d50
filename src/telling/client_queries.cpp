// SPDX-License-Identifier: Apache-2.0
#include "telling/client_queries.h"

#include <algorithm>
#include <utility>

namespace braid {
namespace {

// Whether the answer that is being made does for one who asks now: the nodes of a job, or another
// thread, take seconds for it.
bool is_shared_while_made(ClientQueries::Kind kind) {
  switch (kind) {
    case ClientQueries::Kind::Status:
    case ClientQueries::Kind::Tune:
      return false;
    case ClientQueries::Kind::Plan:
    case ClientQueries::Kind::Facts:
    case ClientQueries::Kind::Timeline:
    case ClientQueries::Kind::Explanation:
      return true;
  }
  return false;
}

}  // namespace

Status ClientQueries::ask(uint64_t client, uid_t user, uid_t viewer, Question question) {
  const auto waiting = waiting_.find(client);
  if (waiting != waiting_.end() && waiting->second >= kPerClientMax) {
    return make_status(StatusCode::ResourceExhausted,
                       "{} queries of this client wait for an answer already: read one before you "
                       "ask again",
                       kPerClientMax);
  }
  auto charge = std::make_shared<UserCharge>(quotas_, user, UserResource::Queries);
  BRAID_RETURN_IF_ERROR(charge->set(1));
  ++waiting_[client];
  forget_idle();
  auto& of_viewer = viewers_[viewer];
  if (of_viewer == nullptr) of_viewer = std::make_unique<Viewer>(loop_);
  const auto making = of_viewer->making.find(question);
  const bool is_made = making != of_viewer->making.end();
  if (is_made && is_shared_while_made(question.kind)) {
    making->second.push_back({client, user, std::move(charge)});
    return Status::ok();
  }
  const auto [asked, is_new] = of_viewer->asked.try_emplace(question);
  asked->second.push_back({client, user, std::move(charge)});
  // What is being made is older than this question: it is made once more then.
  if (!is_new || is_made) return Status::ok();
  of_viewer->order.push_back(std::move(question));
  schedule(viewer);
  return Status::ok();
}

void ClientQueries::schedule(uid_t viewer) {
  Viewer& of_viewer = *viewers_.at(viewer);
  if (of_viewer.is_scheduled || of_viewer.order.empty()) return;
  of_viewer.is_scheduled = true;
  const uint64_t now_ns = clock_.now_ns();
  if (now_ns < of_viewer.next_ns) {
    of_viewer.pause.start_once((of_viewer.next_ns - now_ns) / 1'000'000 + 1,
                               [this, viewer, &of_viewer] {
                                 of_viewer.is_scheduled = false;
                                 schedule(viewer);
                               });
    return;
  }
  turns_.add(viewer, this, [this, viewer] {
    begin_next(viewer);
    return false;
  });
}

void ClientQueries::begin_next(uid_t viewer) {
  Viewer& of_viewer = *viewers_.at(viewer);
  of_viewer.is_scheduled = false;
  const Question question = std::move(of_viewer.order.front());
  of_viewer.order.pop_front();
  of_viewer.making[question] = std::move(of_viewer.asked.extract(question).mapped());
  const uint64_t begun_ns = clock_.now_ns();
  make_(viewer, question,
        lifetime_.guard([this, viewer, question](Build build_answer, uint64_t work_ns) {
          turns_.add(viewer, this,
                     [this, viewer, question, build_answer = std::move(build_answer), work_ns] {
                       build(viewer, question, build_answer, work_ns);
                       return false;
                     });
        }));
  spend(of_viewer, clock_.now_ns() - begun_ns);
  schedule(viewer);
}

void ClientQueries::build(uid_t viewer, const Question& question, const Build& build,
                          uint64_t work_ns) {
  Viewer& of_viewer = *viewers_.at(viewer);
  const uint64_t begun_ns = clock_.now_ns();
  const auto answer = std::make_shared<const Send>(build());
  ++answers_made_;
  spend(of_viewer, work_ns + clock_.now_ns() - begun_ns);
  const Askers askers = std::move(of_viewer.making.extract(question).mapped());
  for (const Asker& asker : askers) send(answer, asker);
  if (of_viewer.asked.contains(question)) of_viewer.order.push_back(question);
  schedule(viewer);
}

void ClientQueries::spend(Viewer& viewer, uint64_t work_ns) {
  const uint64_t pause_ns = std::min(work_ns, kPauseNsMax / kPausesPerWork) * kPausesPerWork;
  viewer.next_ns = std::max(viewer.next_ns, clock_.now_ns()) + pause_ns;
}

void ClientQueries::send(const std::shared_ptr<const Send>& send, const Asker& asker) {
  turns_.add(asker.user, this,
             [this, send, client = asker.client, charge = asker.charge, part = 0U]() mutable {
               ClientConnection* connection = find_(client);
               if (connection != nullptr && (*send)(*connection, part++)) return true;
               (void)charge->set(0);
               const auto waiting = waiting_.find(client);
               if (--waiting->second == 0) waiting_.erase(waiting);
               return false;
             });
}

// Viewers who wait for nothing, and may ask at once.
void ClientQueries::forget_idle() {
  const uint64_t now_ns = clock_.now_ns();
  std::erase_if(viewers_, [now_ns](const auto& one) {
    const Viewer& viewer = *one.second;
    return viewer.asked.empty() && viewer.making.empty() && now_ns >= viewer.next_ns;
  });
}

}  // namespace braid
