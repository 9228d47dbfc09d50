// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "loop/loop.h"

namespace braid {

// Watches a descriptor that somebody else owns. The descriptor must stay open until this is
// destroyed.
class Poll {
 public:
  // `events`: UV_READABLE, UV_WRITABLE. The callback gets the events, or a negative libuv error.
  static Result<std::unique_ptr<Poll>> create(Loop& loop, int fd) {
    std::unique_ptr<Poll> poll(new Poll());
    if (const int error = uv_poll_init(loop.uv(), poll->handle_.get(), fd); error != 0) {
      return Status::from_uv(error, "cannot watch a descriptor");
    }
    poll->handle_.set_initialised();
    poll->handle_.get()->data = poll.get();
    return poll;
  }

  void start(int events, std::function<void(int)> callback) {
    callback_ = std::make_shared<std::function<void(int)>>(std::move(callback));
    change(events);
  }
  // Watches for other events from now on, with the same callback.
  void change(int events) {
    uv_poll_start(handle_.get(), events, [](uv_poll_t* poll, int status, int ready) {
      const auto keep = static_cast<Poll*>(poll->data)->callback_;
      (*keep)(status < 0 ? status : ready);
    });
  }
  void stop() { uv_poll_stop(handle_.get()); }

 private:
  Poll() = default;

  Handle<uv_poll_t> handle_;
  std::shared_ptr<std::function<void(int)>> callback_;
};

}  // namespace braid
