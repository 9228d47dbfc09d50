// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include <uv.h>

#include "base/lifetime.h"
#include "base/socket_address.h"
#include "loop/loop.h"

namespace braid {

// A TCP connection on a loop, with a bounded queue of bytes to send. What is written during one
// round of the loop goes out by one system call at its end. Loop thread only; may be destroyed at
// any time, also from within its handler's functions. Destroying it hands what the socket still
// takes to the kernel and closes.
class TcpStream {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void on_connected() = 0;  // after connect() only
    // `bytes` are valid during the call, even if the stream is destroyed in it.
    virtual void on_bytes(std::span<const uint8_t> bytes) = 0;
    // Nothing comes after it: the connection could not be made, was closed (is_end_of_stream) or
    // broke.
    virtual void on_end(const Status& reason) = 0;
  };

  TcpStream(Loop& loop, size_t send_queue_bytes_max);
  TcpStream(const TcpStream&) = delete;
  TcpStream& operator=(const TcpStream&) = delete;
  ~TcpStream();

  // Begins to connect; on_connected or on_end follow, never from within this call.
  void connect(const SocketAddress& address, Handler& handler);
  // Takes the connection that waits at `listener`. Then start() it.
  Status accept(uv_stream_t* listener);
  void start(Handler& handler);

  // All of `parts` or nothing. ResourceExhausted: the queue is full. Errors of the connection come
  // through on_end, later.
  Status write(std::initializer_list<std::span<const uint8_t>> parts);
  size_t queued_bytes() const;
  // Those, and what the other side's kernel has not acknowledged: on a slow path megabytes.
  size_t unacknowledged_bytes() const;
  // See tcp_round_trip.h.
  std::optional<uint64_t> round_trip_ns() const;

  // The other end's address; nothing if the socket is not connected (any more).
  std::optional<SocketAddress> remote_address() const;

  static bool is_end_of_stream(const Status& reason) { return reason.cause() == UV_EOF; }

 private:
  struct WriteRequest {
    uv_write_t uv{};
    TcpStream* owner = nullptr;  // nullptr: the stream is gone
    std::vector<uint8_t> bytes;
  };
  struct ConnectRequest {
    uv_connect_t uv{};
    TcpStream* owner = nullptr;
  };

  uv_stream_t* stream() { return reinterpret_cast<uv_stream_t*>(handle_.get()); }
  void begin_reading();
  void flush();
  void flush_later();
  void end_later(Status reason);
  void end(const Status& reason);

  Loop& loop_;
  const size_t send_queue_bytes_max_;
  Handle<uv_tcp_t> handle_;
  Handler* handler_ = nullptr;
  bool is_connected_ = false;
  bool has_ended_ = false;
  bool flush_is_due_ = false;
  std::vector<uint8_t> pending_;
  WriteRequest* in_flight_ = nullptr;     // freed by its callback, which libuv always calls
  ConnectRequest* connecting_ = nullptr;  // the same
  Lifetime lifetime_;                     // of what is deferred
};

}  // namespace braid
