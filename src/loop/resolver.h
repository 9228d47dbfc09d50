// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <netdb.h>

#include "base/socket_address.h"
#include "loop/look_ups.h"
#include "loop/loop.h"

namespace braid {

// One look-up of a host name at a time, each on a thread of its own: a name server that does not
// answer holds up nobody else. Destroying it cancels the callback; a look-up that runs then ends on
// its own time and is forgotten. Loop thread only.
class Resolver {
 public:
  using Callback = std::function<void(Result<std::vector<SocketAddress>>)>;
  // As getaddrinfo does it, which is what it is but in tests.
  using LookUp = std::function<int(const char* host, const char* service, const addrinfo* hints,
                                   addrinfo** found)>;

  // `under_way` bounds how many there are; other ones than the process's are for tests.
  explicit Resolver(Loop& loop, LookUp look_up = ::getaddrinfo,
                    std::shared_ptr<LookUps> under_way = LookUps::of_process());
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  ~Resolver();

  // One at a time. `callback` never comes from within this call, unless it fails: then it never
  // comes. `user`: who gave the name, and has his share of the look-ups; none: this daemon itself.
  Status resolve(const std::string& host, uint16_t port, Callback callback,
                 std::optional<uint32_t> user = std::nullopt);

 private:
  struct Request;
  void on_answer();

  Loop& loop_;
  const LookUp look_up_;
  const std::shared_ptr<LookUps> under_way_;
  Callback callback_;
  std::shared_ptr<Request> request_;  // the thread's, too
};

}  // namespace braid
