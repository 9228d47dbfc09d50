// SPDX-License-Identifier: Apache-2.0
#include "net/ucx_worker_maker.h"

#include <utility>

namespace braid {

UcxWorkerMaker::UcxWorkerMaker(Loop& loop, PacedTasks& paced, std::atomic<uint64_t>& strangers)
    : paced_(paced), strangers_(strangers), thread_(loop, "ucx workers") {}

void UcxWorkerMaker::make(const void* owner, std::shared_ptr<UcxContext> context,
                          uint64_t link_secret, std::function<void(Made)> take) {
  const uint64_t request = ++last_request_;
  requests_[request] = {owner, std::move(take)};
  const auto made =
      std::make_shared<Made>(Status(StatusCode::Unavailable, "the rail has had no carrier yet"));
  const auto work = [this, made, link_secret, context = std::move(context)] {
    if (context != nullptr) *made = UcxWorker::create(context, link_secret, strangers_);
  };
  const auto on_made = [this, request, made] {
    paced_.add(this, [this, request, made] { hand_over(request, std::move(*made)); });
  };
  if (thread_.run(work, on_made)) return;
  *made = Status(StatusCode::ResourceExhausted, "too many flows are opened at once");
  on_made();
}

UcxWorkerMaker::~UcxWorkerMaker() { paced_.drop(this); }

void UcxWorkerMaker::hand_over(uint64_t request, Made made) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) {
    if (made) destroy(std::move(*made));
    return;
  }
  const Request taken = std::move(found->second);
  requests_.erase(found);
  taken.take(std::move(made));
}

void UcxWorkerMaker::drop(const void* owner) {
  std::erase_if(requests_, [owner](const auto& entry) { return entry.second.owner == owner; });
}

void UcxWorkerMaker::destroy(std::unique_ptr<UcxWorker> worker) {
  thread_.post([worker = std::shared_ptr<UcxWorker>(std::move(worker))] {});
}

void UcxWorkerMaker::after_all(const std::function<void()>& done) {
  if (!thread_.run([] {}, done)) paced_.add(this, done);
}

}  // namespace braid
