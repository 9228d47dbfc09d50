// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ucx_endpoint.h"

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "net/ucx/ucx_error.h"

namespace braid {
Result<std::unique_ptr<UcxEndpoint>> UcxEndpoint::create(UcxWorker& worker,
                                                         std::span<const uint8_t> remote_address) {
  const auto whole = worker.whole_address(remote_address);
  if (!whole) return whole.status();
  std::unique_ptr<UcxEndpoint> endpoint(new UcxEndpoint(worker));
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(whole->data());
  // Without peer mode UCX takes shared memory between processes of one host and never reports that
  // the other has died.
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.arg = endpoint.get();
  params.err_handler.cb = [](void* self, ucp_ep_h, ucs_status_t status) {
    static_cast<UcxEndpoint*>(self)->on_error(status_from_ucx(status, "the connection broke"));
  };
  const UcxSockets::Use use(worker.sockets());
  const ucs_status_t error = ucp_ep_create(worker.handle(), &params, &endpoint->handle_);
  if (error != UCS_OK) {
    endpoint->handle_ = nullptr;
    return endpoint->explain(
        status_from_ucx(error, "cannot reach the other node from rail " + worker.context().rail()));
  }
  return endpoint;
}

UcxEndpoint::~UcxEndpoint() { close(); }

void UcxEndpoint::set_handler(UcxEndpointHandler& handler) {
  handler_ = &handler;
  if (!early_error_) handler.on_endpoint_error(early_error_);
}

Status UcxEndpoint::explain(Status error) const {
  const std::string missing = worker_.sockets().missing_ports();
  if (missing.empty()) return error;
  return {StatusCode::ResourceExhausted, error.message() + ": " + missing, error.cause()};
}

void UcxEndpoint::on_error(const Status& error) {
  early_error_ = explain(error);
  if (handler_ != nullptr) handler_->on_endpoint_error(early_error_);
}

bool UcxEndpoint::close() {
  if (handle_ == nullptr) return true;
  const UcxSockets::Use use(worker_.sockets());
  worker_.sockets().end();
  const SystemClock clock;
  const uint64_t deadline_ms = clock.now_ms() + kCloseTimeoutMs;
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  ucs_status_ptr_t request = ucp_ep_close_nbx(std::exchange(handle_, nullptr), &params);
  const bool is_pending = UCS_PTR_IS_PTR(request);
  // Usually over in one or two rounds; queue pairs may take longer to flush.
  while (((is_pending && ucp_request_check_status(request) == UCS_INPROGRESS) ||
          sends_in_progress_ > 0) &&
         clock.now_ms() < deadline_ms) {
    worker_.progress();
  }
  if (sends_in_progress_ > 0) {
    BRAID_LOG_WARN("UCX left {} sends open on a closed endpoint (rail {})", sends_in_progress_,
                   worker_.context().rail());
  }
  if (is_pending) ucp_request_free(request);
  return sends_in_progress_ == 0;
}

void UcxEndpoint::send_done(void* request, ucs_status_t status, void* endpoint) {
  auto* self = static_cast<UcxEndpoint*>(endpoint);
  const uint64_t token = *static_cast<uint64_t*>(request);
  ucp_request_free(request);
  --self->sends_in_progress_;
  self->handler_->on_send_done(
      token, status == UCS_OK ? Status::ok() : status_from_ucx(status, "sending failed"));
}

UcxEndpoint::SendResult UcxEndpoint::send(unsigned id, std::span<const uint8_t> header,
                                          std::span<const uint8_t> payload, uint64_t token) {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  params.cb.send = send_done;
  params.user_data = this;
  const UcxSockets::Use use(worker_.sockets());
  ucs_status_ptr_t request = ucp_am_send_nbx(handle_, id, header.data(), header.size(),
                                             payload.data(), payload.size(), &params);
  if (request == nullptr) return SendResult::Done;
  if (UCS_PTR_IS_ERR(request)) {
    handler_->on_endpoint_error(status_from_ucx(UCS_PTR_STATUS(request), "sending failed"));
    return SendResult::Failed;
  }
  // The context reserved this much of each request for its user; no callback comes before we are
  // back in progress.
  *static_cast<uint64_t*>(request) = token;
  ++sends_in_progress_;
  return SendResult::InProgress;
}

}  // namespace braid
