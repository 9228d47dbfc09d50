// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <uv.h>

#include "loop/loop.h"
#include "loop/socket_address.h"

namespace braid {

// One look-up of a host name, on libuv's thread pool. Destroying it cancels the callback; a look-up
// that already runs ends on its own time and is forgotten. Loop thread only.
class Resolver {
 public:
  using Callback = std::function<void(Result<std::vector<SocketAddress>>)>;

  explicit Resolver(Loop& loop) : loop_(loop) {}
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  ~Resolver();

  // One at a time. `callback` never comes from within this call, unless it fails: then it never
  // comes.
  Status resolve(const std::string& host, uint16_t port, Callback callback);

 private:
  struct Request {
    uv_getaddrinfo_t uv{};
    Resolver* owner = nullptr;  // nullptr: nobody waits any more
    std::string host;
    Callback callback;
  };
  static void on_resolved(uv_getaddrinfo_t* uv, int error, addrinfo* found);

  Loop& loop_;
  Request* request_ = nullptr;  // freed by its callback, which libuv always calls
};

}  // namespace braid
