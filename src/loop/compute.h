// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "loop/work_thread.h"

namespace braid {

// Computes an answer on `thread`, and gives it to `done` on the loop, never from within this call.
// `work` must not touch what the loop may change meanwhile; `done` comes also when the asker
// has ended. Without a thread, or where too many tasks wait for it already, both happen at once.
template <typename Answer>
void compute(WorkThread* thread, std::function<Answer()> work, std::function<void(Answer&)> done) {
  const auto answer = std::make_shared<std::optional<Answer>>();
  const WorkThread::Task run = [answer, work = std::move(work)] { answer->emplace(work()); };
  const WorkThread::Task take = [answer, done = std::move(done)] { done(**answer); };
  if (thread != nullptr && thread->run(run, take)) return;
  run();
  take();
}

}  // namespace braid
