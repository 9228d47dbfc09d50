// SPDX-License-Identifier: Apache-2.0
#include "job/job_polling.h"

namespace braid {

void JobPolling::poll(bool polls) {
  if (jobs_ == nullptr || polls == polls_) return;
  polls_ = polls;
  if (polls) {
    jobs_->add();
  } else {
    jobs_->remove();
  }
  for (Session* session : sessions_) {
    if (session != nullptr) session->let_trainer_poll(polls);
  }
}

}  // namespace braid
