// SPDX-License-Identifier: Apache-2.0
#include "loop/tcp_listener.h"

#include "loop/tcp_segments.h"

namespace braid {
namespace {

constexpr int kBacklog = 4096;  // the kernel takes net.core.somaxconn at most

}  // namespace

Result<std::unique_ptr<TcpListener>> TcpListener::create(Loop& loop, const SocketAddress& address,
                                                         size_t send_queue_bytes_max,
                                                         Callback callback) {
  std::unique_ptr<TcpListener> listener(
      new TcpListener(loop, address, send_queue_bytes_max, std::move(callback)));
  BRAID_RETURN_IF_ERROR(
      listener->listen().with_context(fmt::format("cannot listen at {}", address.to_string())));
  return listener;
}

Status TcpListener::listen() {
  BRAID_ASSERT_IN_LOOP(loop_);
  if (const int error = uv_tcp_init(loop_.uv(), handle_.get()); error != 0) {
    return Status::from_uv(error, "socket");
  }
  handle_.set_initialised();
  handle_.get()->data = this;
  if (const int error = uv_tcp_bind(handle_.get(), address_.get(), 0); error != 0) {
    return Status::from_uv(error, "bind");
  }
  uv_os_fd_t descriptor = -1;
  if (uv_fileno(reinterpret_cast<uv_handle_t*>(handle_.get()), &descriptor) == 0)
    limit_tcp_segments(descriptor, kControlSegmentBytes);
  const int error = uv_listen(reinterpret_cast<uv_stream_t*>(handle_.get()), kBacklog,
                              [](uv_stream_t* uv, int status) {
                                static_cast<TcpListener*>(uv->data)->on_connection(status);
                              });
  if (error != 0) return Status::from_uv(error, "listen");

  sockaddr_storage bound{};
  int bytes = sizeof(bound);
  uv_tcp_getsockname(handle_.get(), reinterpret_cast<sockaddr*>(&bound), &bytes);
  const auto address = SocketAddress::from(reinterpret_cast<const sockaddr*>(&bound));
  if (address) address_ = *address;
  return Status::ok();
}

void TcpListener::on_connection(int error) {
  if (error != 0) {
    callback_(Status::from_uv(error, "cannot accept a connection"));
    return;
  }
  auto stream = std::make_unique<TcpStream>(loop_, send_queue_bytes_max_);
  if (Status status = stream->accept(reinterpret_cast<uv_stream_t*>(handle_.get())); !status) {
    callback_(std::move(status));
    return;
  }
  callback_(std::move(stream));
}

}  // namespace braid
