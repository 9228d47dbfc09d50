// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ucx_worker.h"

#include <mutex>

#include "base/log.h"
#include "net/ucx/ucx_error.h"
#include "net/ucx/ucx_version.h"

namespace braid {
namespace {

// The first byte tells the versions of protocol and format; UCX asserts that it knows them.
bool have_one_format(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  return !a.empty() && !b.empty() && a.front() == b.front();
}

void say_unknown_address() {
  static std::once_flag once;
  std::call_once(once, [] {
    BRAID_LOG_WARN(
        "UCX {} writes addresses of workers in a way that braid does not know: what other daemons "
        "send as an address goes to UCX as it came",
        ucx_version());
  });
}

}  // namespace

Result<std::vector<uint8_t>> UcxWorker::whole_address(std::span<const uint8_t> remote) const {
  if (tcp_) return tcp_->with(remote);
  if (!have_one_format(remote, address_)) {
    return make_status(StatusCode::Protocol,
                       "the other node's UCX worker has an address that UCX {} does not read",
                       ucx_version());
  }
  // UCX reads an address without knowing where it ends: one that was cut short goes on with zeros,
  // which it refuses.
  constexpr size_t kPaddingBytes = 16 << 10;
  std::vector<uint8_t> padded(remote.begin(), remote.end());
  padded.resize(padded.size() + kPaddingBytes);
  return padded;
}

ucs_status_t UcxWorker::receive(void* worker, const void* header, size_t header_bytes,
                                void* payload, size_t payload_bytes,
                                const ucp_am_recv_param_t* param) {
  UcxMessageHandler* const handler = static_cast<UcxWorker*>(worker)->handler_;
  const bool is_whole = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
  if (handler != nullptr) {
    handler->on_message({static_cast<const uint8_t*>(header), header_bytes},
                        is_whole ? std::span(static_cast<const uint8_t*>(payload), payload_bytes)
                                 : std::span<const uint8_t>(),
                        is_whole);
  }
  return UCS_OK;  // the buffer is UCX's again; an announced (rendezvous) message is dropped by it
}

Result<std::unique_ptr<UcxWorker>> UcxWorker::create(std::shared_ptr<UcxContext> context,
                                                     const Sha256Digest& proof_key,
                                                     std::atomic<uint64_t>& strangers,
                                                     int segment_bytes) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  std::unique_ptr<UcxWorker> worker(
      new UcxWorker(std::move(context), proof_key, strangers, segment_bytes));
  const UcxSockets::Use use(worker->sockets_);
  if (const auto error = ucp_worker_create(worker->context_->handle(), &params, &worker->handle_);
      error != UCS_OK) {
    worker->handle_ = nullptr;
    std::string what = "cannot make a UCX worker on rail " + worker->context_->rail();
    if (const std::string missing = worker->sockets_.missing_ports(); !missing.empty())
      return Status(StatusCode::ResourceExhausted, what + ": " + missing);
    const Status failed = status_from_ucx(error, what);
    return Status(failed.code(), failed.message() + ucx_environment(worker->context_->options()),
                  failed.cause());
  }
  if (worker->context_->is_tcp_alone() && !worker->sockets_.has_listeners()) {
    return Status(StatusCode::Internal,
                  "UCX listens on a port that braid does not know of, and anybody could connect to "
                  "it: is the UCX library loaded in an unusual way (dlmopen, RTLD_DEEPBIND)?");
  }
  if (const auto error = ucp_worker_get_efd(worker->handle_, &worker->event_fd_); error != UCS_OK) {
    return status_from_ucx(error, "a UCX worker has no event descriptor");
  }
  BRAID_RETURN_IF_ERROR(worker->read_address());
  return worker;
}

UcxWorker::~UcxWorker() {
  if (handle_ == nullptr) return;
  const UcxSockets::Use use(sockets_);
  sockets_.end();
  ucp_worker_destroy(handle_);
}

Status UcxWorker::set_handler(unsigned id, UcxMessageHandler& handler) {
  ucp_am_handler_param_t params{};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = id;
  params.flags = UCP_AM_FLAG_WHOLE_MSG;
  params.cb = receive;
  params.arg = this;
  if (const auto error = ucp_worker_set_am_recv_handler(handle_, &params); error != UCS_OK) {
    return status_from_ucx(error, "cannot set a handler of active messages");
  }
  handler_ = &handler;
  return Status::ok();
}

Status UcxWorker::read_address() {
  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  if (const auto error = ucp_worker_get_address(handle_, &address, &bytes); error != UCS_OK) {
    return status_from_ucx(error, "a UCX worker has no address");
  }
  const auto* begin = reinterpret_cast<const uint8_t*>(address);
  address_.assign(begin, begin + bytes);
  ucp_worker_address_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ADDRESS_ATTR_FIELD_UID;
  const ucs_status_t error = ucp_worker_address_query(address, &attributes);
  ucp_worker_release_address(handle_, address);
  const auto listening = sockets_.listening_at();
  if (!context_->is_tcp_alone() || !listening || error != UCS_OK) return Status::ok();
  tcp_ = TcpWorkerAddress::take_apart(address_, attributes.worker_uid, *listening);
  if (tcp_) {
    address_ = tcp_->parts();
  } else {
    say_unknown_address();
  }
  return Status::ok();
}

unsigned UcxWorker::progress() {
  const UcxSockets::Use use(sockets_);
  return ucp_worker_progress(handle_);
}

bool UcxWorker::arm() {
  // Any other error would leave the worker unarmed; progressing again is right for it too.
  return ucp_worker_arm(handle_) == UCS_OK;
}

}  // namespace braid
