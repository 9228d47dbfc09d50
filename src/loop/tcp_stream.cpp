// SPDX-License-Identifier: Apache-2.0
#include "loop/tcp_stream.h"

#include <array>
#include <memory>

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "loop/tcp_round_trip.h"
#include "loop/tcp_segments.h"
#include "loop/tcp_timers.h"

namespace braid {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr unsigned kKeepAliveSeconds = 60;
constexpr size_t kPendingBytesKept = 64 << 10;  // a burst's buffer is given back

// libuv asks for a buffer and fills it at once, so a thread's streams share one. It also keeps the
// bytes valid while a handler destroys the stream they came from. On the heap: thread-local arrays
// are taken out of the stack of every thread, and those of the metrics' HTTP server are small.
void allocate_read_buffer(uv_handle_t*, size_t, uv_buf_t* buffer) {
  static thread_local const auto bytes = std::make_unique<std::array<char, kReadBytes>>();
  *buffer = uv_buf_init(bytes->data(), kReadBytes);
}

}  // namespace

TcpStream::TcpStream(Loop& loop, size_t send_queue_bytes_max)
    : loop_(loop), send_queue_bytes_max_(send_queue_bytes_max) {
  BRAID_ASSERT_IN_LOOP(loop_);
  uv_tcp_init(loop_.uv(), handle_.get());
  handle_.set_initialised();
  handle_.get()->data = this;
}

TcpStream::~TcpStream() {
  if (is_connected_ && !has_ended_ && in_flight_ == nullptr && !pending_.empty()) {
    const uv_buf_t buffer = uv_buf_init(reinterpret_cast<char*>(pending_.data()),
                                        static_cast<unsigned>(pending_.size()));
    uv_try_write(stream(), &buffer, 1);
  }
  if (in_flight_ != nullptr) in_flight_->owner = nullptr;
  if (connecting_ != nullptr) connecting_->owner = nullptr;
}

void TcpStream::connect(const SocketAddress& address, Handler& handler) {
  BRAID_ASSERT(handler_ == nullptr, "a stream is connected once");
  handler_ = &handler;
  // libuv would make the socket too late for its options.
  Fd socket(::socket(address.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  limit_tcp_segments(socket.get(), kControlSegmentBytes);
  if (uv_tcp_open(handle_.get(), socket.get()) == 0) (void)socket.release();
  auto* request = new ConnectRequest{{}, this};
  request->uv.data = request;
  const int error =
      uv_tcp_connect(&request->uv, handle_.get(), address.get(), [](uv_connect_t* uv, int status) {
        std::unique_ptr<ConnectRequest> done(static_cast<ConnectRequest*>(uv->data));
        TcpStream* self = done->owner;
        if (self == nullptr) return;
        self->connecting_ = nullptr;
        if (status != 0) {
          self->end(Status::from_uv(status, "cannot connect"));
          return;
        }
        const Lifetime::Token life = self->lifetime_.token();
        self->is_connected_ = true;
        self->handler_->on_connected();
        if (life.is_over()) return;
        self->begin_reading();
        self->flush();
      });
  if (error != 0) {
    delete request;
    end_later(Status::from_uv(error, "cannot connect"));
    return;
  }
  connecting_ = request;
}

Status TcpStream::accept(uv_stream_t* listener) {
  if (const int error = uv_accept(listener, stream()); error != 0) {
    return Status::from_uv(error, "cannot accept a connection");
  }
  is_connected_ = true;
  return Status::ok();
}

void TcpStream::start(Handler& handler) {
  BRAID_ASSERT(is_connected_ && handler_ == nullptr, "start() comes once, after accept()");
  handler_ = &handler;
  begin_reading();
}

void TcpStream::begin_reading() {
  uv_tcp_nodelay(handle_.get(), 1);
  uv_tcp_keepalive(handle_.get(), 1, kKeepAliveSeconds);
  uv_os_fd_t socket = -1;
  if (uv_fileno(reinterpret_cast<const uv_handle_t*>(handle_.get()), &socket) == 0)
    shorten_tcp_timers(socket);
  const int error = uv_read_start(
      stream(), allocate_read_buffer, [](uv_stream_t* uv, ssize_t count, const uv_buf_t* buffer) {
        auto* self = static_cast<TcpStream*>(uv->data);
        if (count > 0) {
          self->handler_->on_bytes(
              {reinterpret_cast<const uint8_t*>(buffer->base), static_cast<size_t>(count)});
        } else if (count == UV_EOF) {
          self->end({StatusCode::Unavailable, "closed by the other side", UV_EOF});
        } else if (count < 0) {
          self->end(Status::from_uv(static_cast<int>(count), "cannot read"));
        }
      });
  if (error != 0) end_later(Status::from_uv(error, "cannot read"));
}

Status TcpStream::write(std::initializer_list<std::span<const uint8_t>> parts) {
  BRAID_ASSERT_IN_LOOP(loop_);
  size_t bytes = 0;
  for (const auto& part : parts) bytes += part.size();
  if (bytes > send_queue_bytes_max_ || queued_bytes() > send_queue_bytes_max_ - bytes) {
    return make_status(StatusCode::ResourceExhausted, "{} bytes wait to be sent already (most: {})",
                       queued_bytes(), send_queue_bytes_max_);
  }
  for (const auto& part : parts) pending_.insert(pending_.end(), part.begin(), part.end());
  flush_later();
  return Status::ok();
}

size_t TcpStream::queued_bytes() const {
  return pending_.size() +
         uv_stream_get_write_queue_size(reinterpret_cast<const uv_stream_t*>(handle_.get()));
}

size_t TcpStream::unacknowledged_bytes() const {
  uv_os_fd_t socket = -1;
  int in_kernel = 0;
  if (uv_fileno(reinterpret_cast<const uv_handle_t*>(handle_.get()), &socket) != 0 ||
      ::ioctl(socket, SIOCOUTQ, &in_kernel) != 0)
    in_kernel = 0;
  return queued_bytes() + static_cast<size_t>(in_kernel);
}

std::optional<uint64_t> TcpStream::round_trip_ns() const {
  uv_os_fd_t socket = -1;
  if (uv_fileno(reinterpret_cast<const uv_handle_t*>(handle_.get()), &socket) != 0)
    return std::nullopt;
  return tcp_round_trip_ns(socket);
}

void TcpStream::flush_later() {
  if (flush_is_due_) return;
  flush_is_due_ = true;
  loop_.defer(lifetime_.guard([this] {
    flush_is_due_ = false;
    flush();
  }));
}

void TcpStream::flush() {
  // One write at a time: what is written meanwhile gathers into the next one.
  if (has_ended_ || !is_connected_ || in_flight_ != nullptr || pending_.empty()) return;
  auto* request = new WriteRequest{{}, this, std::move(pending_)};
  pending_ = {};
  request->uv.data = request;
  const uv_buf_t buffer = uv_buf_init(reinterpret_cast<char*>(request->bytes.data()),
                                      static_cast<unsigned>(request->bytes.size()));
  const int error = uv_write(&request->uv, stream(), &buffer, 1, [](uv_write_t* uv, int status) {
    std::unique_ptr<WriteRequest> done(static_cast<WriteRequest*>(uv->data));
    TcpStream* self = done->owner;
    if (self == nullptr) return;
    self->in_flight_ = nullptr;
    if (status != 0) {
      self->end(Status::from_uv(status, "cannot send"));
      return;
    }
    if (self->pending_.empty() && done->bytes.capacity() <= kPendingBytesKept) {
      done->bytes.clear();
      self->pending_ = std::move(done->bytes);
    }
    self->flush();
  });
  if (error != 0) {
    delete request;
    end_later(Status::from_uv(error, "cannot send"));
    return;
  }
  in_flight_ = request;
}

void TcpStream::end_later(Status reason) {
  loop_.defer(lifetime_.guard([this, reason = std::move(reason)] { end(reason); }));
}

void TcpStream::end(const Status& reason) {
  if (has_ended_) return;
  has_ended_ = true;
  uv_read_stop(stream());
  handler_->on_end(reason);
}

std::optional<SocketAddress> TcpStream::remote_address() const {
  sockaddr_storage storage{};
  int bytes = sizeof(storage);
  if (uv_tcp_getpeername(handle_.get(), reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) {
    return std::nullopt;
  }
  return SocketAddress::from(reinterpret_cast<const sockaddr*>(&storage));
}

}  // namespace braid
