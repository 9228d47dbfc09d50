// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ucx_worker_maker.h"

#include <utility>

namespace braid {
namespace {

UcxWorkerMaker::Made connected(std::unique_ptr<UcxWorker> worker,
                               const std::vector<uint8_t>& remote_address) {
  auto endpoint = UcxEndpoint::create(*worker, remote_address);
  if (!endpoint) return endpoint.status();
  return UcxConnection{std::move(worker), std::move(*endpoint)};
}

}  // namespace

UcxWorkerMaker::UcxWorkerMaker(Loop& loop, PacedTasks& paced, std::atomic<uint64_t>& strangers)
    : paced_(paced), strangers_(strangers), thread_(loop, "ucx workers") {}

void UcxWorkerMaker::make(const void* owner, std::shared_ptr<UcxContext> context,
                          const Sha256Digest& proof_key,
                          std::optional<std::vector<uint8_t>> remote_address,
                          std::function<void(Made)> take, int segment_bytes) {
  start(
      owner,
      [this, proof_key, segment_bytes, context = std::move(context),
       remote = std::move(remote_address)]() -> Made {
        if (context == nullptr)
          return Status(StatusCode::Unavailable, "the rail has had no carrier yet");
        auto worker = UcxWorker::create(context, proof_key, strangers_, segment_bytes);
        if (!worker) return worker.status();
        if (!remote) return UcxConnection{std::move(*worker), nullptr};
        return connected(std::move(*worker), *remote);
      },
      std::move(take));
}

void UcxWorkerMaker::connect(const void* owner, std::unique_ptr<UcxWorker> worker,
                             std::vector<uint8_t> remote_address, std::function<void(Made)> take) {
  // Shared, for a function must be copyable.
  const auto held = std::make_shared<std::unique_ptr<UcxWorker>>(std::move(worker));
  start(
      owner,
      [held, remote = std::move(remote_address)] { return connected(std::move(*held), remote); },
      std::move(take));
}

void UcxWorkerMaker::start(const void* owner, std::function<Made()> work,
                           std::function<void(Made)> take) {
  const uint64_t request = ++last_request_;
  requests_[request] = {owner, std::move(take)};
  const auto made = std::make_shared<Made>(
      Status(StatusCode::ResourceExhausted, "too many flows are opened at once"));
  const auto on_made = [this, request, made] {
    paced_.add(this, [this, request, made] { hand_over(request, std::move(*made)); });
  };
  if (!thread_.run([made, work = std::move(work)] { *made = work(); }, on_made)) on_made();
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

void UcxWorkerMaker::destroy(UcxConnection connection) {
  thread_.post([gone = std::make_shared<UcxConnection>(std::move(connection))] {});
}

void UcxWorkerMaker::after_all(const std::function<void()>& done) {
  if (!thread_.run([] {}, done)) paced_.add(this, done);
}

}  // namespace braid
