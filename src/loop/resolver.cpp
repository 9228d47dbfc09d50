// SPDX-License-Identifier: Apache-2.0
#include "loop/resolver.h"

#include <cerrno>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <signal.h>

#include "base/descriptor_table.h"
#include "base/mutex.h"
#include "loop/door.h"

namespace braid {
namespace {

constexpr uint32_t kDescriptorsSpare = 16;

Status resolve_error(const std::string& host, int error) {
  // A name that is unknown now may be known later only if the server said that it could not tell.
  const bool may_pass = error == EAI_AGAIN || error == EAI_MEMORY || error == EAI_SYSTEM;
  return {may_pass ? StatusCode::Unavailable : StatusCode::NotFound,
          fmt::format("host name '{}' cannot be resolved: {}", host, ::gai_strerror(error)), error};
}

Result<std::vector<SocketAddress>> look_up_host(const Resolver::LookUp& look_up,
                                                const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = look_up(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return resolve_error(host, error);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    if (const auto address = SocketAddress::from(entry->ai_addr)) addresses.push_back(*address);
  }
  ::freeaddrinfo(found);
  if (addresses.empty()) return resolve_error(host, EAI_NONAME);
  return addresses;
}

}  // namespace

struct Resolver::Request {
  struct Told {};

  Request(Loop& loop, std::string name, std::function<void()> handler)
      : host(std::move(name)),
        door(std::make_unique<Door<Told>>(loop, 1,
                                          [handler = std::move(handler)](Told&) { handler(); })) {}

  // On the loop: nobody waits any more; the thread may go on.
  void forget() {
    is_forgotten = true;
    std::unique_ptr<Door<Told>> last;
    MutexLock lock(mutex);
    last.swap(door);
  }
  // On the thread, once `answer` is there.
  void tell() {
    MutexLock lock(mutex);
    if (door != nullptr) door->send({});
  }

  const std::string host;
  bool is_forgotten = false;  // the loop's
  std::optional<Result<std::vector<SocketAddress>>> answer;
  Mutex mutex;
  std::unique_ptr<Door<Told>> door BRAID_GUARDED_BY(mutex);  // made and destroyed on the loop
};

Resolver::Resolver(Loop& loop, LookUp look_up, std::shared_ptr<LookUps> under_way)
    : loop_(loop), look_up_(std::move(look_up)), under_way_(std::move(under_way)) {}

Resolver::~Resolver() {
  if (request_ != nullptr) request_->forget();
}

Status Resolver::resolve(const std::string& host, uint16_t port, Callback callback,
                         std::optional<uint32_t> user) {
  BRAID_ASSERT_IN_LOOP(loop_);
  BRAID_ASSERT(request_ == nullptr, "one look-up at a time");
  // A door has no error for it. Other threads open descriptors, too, but not that many at once.
  if (!has_descriptors(kDescriptorsSpare))
    return Status::from_errno(EMFILE, fmt::format("host name '{}' cannot be looked up now", host));
  BRAID_RETURN_IF_ERROR(under_way_->begin(host, user));
  auto request = std::make_shared<Request>(loop_, host, [this] {
    // The door must not go within its handler, and the callback may destroy this resolver.
    loop_.defer([this, weak = std::weak_ptr<Request>(request_)] {
      const auto asked = weak.lock();
      if (asked != nullptr && !asked->is_forgotten) on_answer();
    });
  });
  try {
    std::thread([request, port, user, look_up = look_up_, under_way = under_way_] {
      sigset_t all;
      ::sigfillset(&all);  // signals are for the loops' threads
      ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
      request->answer = look_up_host(look_up, request->host, port);
      under_way->end(user);
      request->tell();
    }).detach();
  } catch (const std::system_error& error) {
    under_way_->end(user);
    return {StatusCode::Unavailable,
            fmt::format("host name '{}' cannot be looked up now: no thread for it: {}", host,
                        error.what())};
  }
  request_ = std::move(request);
  callback_ = std::move(callback);
  return Status::ok();
}

void Resolver::on_answer() {
  const auto request = std::exchange(request_, nullptr);
  const Callback callback = std::exchange(callback_, nullptr);
  request->forget();
  callback(std::move(*request->answer));
}

}  // namespace braid
