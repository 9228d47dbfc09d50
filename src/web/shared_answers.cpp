// SPDX-License-Identifier: Apache-2.0
#include "web/shared_answers.h"

#include <chrono>
#include <new>
#include <utility>

namespace braid {
namespace {

WebReply busy_reply() {
  WebReply reply = text_reply(503, "Too many ask at once. Ask again in a second.");
  reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

}  // namespace

// Counted with the lock held.
class SharedAnswers::Asker {
 public:
  explicit Asker(uint32_t& askers) : askers_(askers) { ++askers_; }
  ~Asker() { --askers_; }
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

 private:
  uint32_t& askers_;
};

WebReply SharedAnswers::ask(const std::string& key, const std::function<WebReply()>& make) {
  std::unique_lock lock(mutex_);
  forget_stale();
  const auto found = entries_.find(key);
  if (found != entries_.end() && found->second->reply) return *found->second->reply;
  if (askers_ >= askers_max_) return busy_reply();
  const Asker asker(askers_);
  if (found != entries_.end()) return wait_for(lock, found->second);
  if (entries_.size() >= kAnswersMax) return busy_reply();
  const auto entry = entries_[key] = std::make_shared<Entry>();
  lock.unlock();
  std::optional<WebReply> reply;
  try {
    reply = make();
  } catch (const std::bad_alloc&) {  // else all who ask for it later would wait for nobody
    reply = text_reply(503, "The daemon is out of memory.");
  }
  lock.lock();
  entry->reply = reply;
  entry->made_ns = clock_.now_ns();
  made_.notify_all();
  return *reply;
}

WebReply SharedAnswers::wait_for(std::unique_lock<std::mutex>& lock,
                                 const std::shared_ptr<Entry>& entry) {
  made_.wait_for(lock, std::chrono::milliseconds(kWaitMs),
                 [&] { return entry->reply.has_value(); });
  return entry->reply ? *entry->reply : busy_reply();
}

void SharedAnswers::forget_stale() {
  const uint64_t now_ns = clock_.now_ns();
  std::erase_if(entries_, [&](const auto& one) {
    return one.second->reply && now_ns - one.second->made_ns >= fresh_ns_;
  });
}

}  // namespace braid
