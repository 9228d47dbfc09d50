// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <uv.h>

#include "base/socket_address.h"
#include "loop/loop.h"
#include "loop/tcp_stream.h"

namespace braid {

// Listens on a TCP address and hands out what connects. Loop thread only; not to be destroyed from
// within the callback.
class TcpListener {
 public:
  // Gets an accepted stream, which is to be started; or the error (out of descriptors, …) of one
  // that could not be accepted.
  using Callback = std::function<void(Result<std::unique_ptr<TcpStream>>)>;

  static Result<std::unique_ptr<TcpListener>> create(Loop& loop, const SocketAddress& address,
                                                     size_t send_queue_bytes_max,
                                                     Callback callback);

  const SocketAddress& address() const { return address_; }  // with the port that was bound

 private:
  TcpListener(Loop& loop, const SocketAddress& address, size_t send_queue_bytes_max,
              Callback callback)
      : loop_(loop),
        address_(address),
        send_queue_bytes_max_(send_queue_bytes_max),
        callback_(std::move(callback)) {}
  Status listen();
  void on_connection(int error);

  Loop& loop_;
  SocketAddress address_;
  const size_t send_queue_bytes_max_;
  const Callback callback_;
  Handle<uv_tcp_t> handle_;
};

}  // namespace braid
