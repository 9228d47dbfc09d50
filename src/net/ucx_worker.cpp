// SPDX-License-Identifier: Apache-2.0
#include "net/ucx_worker.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "net/ucx_error.h"
#include "net/ucx_listeners.h"

namespace braid {
namespace {

// UCX may have had some descriptors open for a moment, below those that it keeps.
constexpr int kDescriptorsPassing = 64;

// UCX does not tell which sockets are a worker's. They are the listening ones that appear while it
// is made, so workers are made one at a time, and those of others are remembered.
std::mutex listeners_mutex;
std::unordered_set<int>& known_listeners() {
  static std::unordered_set<int> known;
  return known;
}

ucs_status_t receive(void* handler, const void* header, size_t header_bytes, void* payload,
                     size_t payload_bytes, const ucp_am_recv_param_t* param) {
  const bool is_whole = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
  static_cast<UcxMessageHandler*>(handler)->on_message(
      {static_cast<const uint8_t*>(header), header_bytes},
      is_whole ? std::span(static_cast<const uint8_t*>(payload), payload_bytes)
               : std::span<const uint8_t>(),
      is_whole);
  return UCS_OK;  // the buffer is UCX's again; an announced (rendezvous) message is dropped by it
}

}  // namespace

Result<std::unique_ptr<UcxWorker>> UcxWorker::create(std::shared_ptr<UcxContext> context) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  ucp_worker_h handle = nullptr;
  std::unique_ptr<UcxWorker> worker;
  {
    const std::lock_guard lock(listeners_mutex);
    // A new descriptor has the lowest number that is free. To look at all there are would make a
    // flow take longer the more flows there are.
    const int from = lowest_free_descriptor();
    if (const auto error = ucp_worker_create(context->handle(), &params, &handle);
        error != UCS_OK) {
      return status_from_ucx(error, "cannot make a UCX worker on rail " + context->rail());
    }
    const int to = std::max(from, lowest_free_descriptor()) + kDescriptorsPassing;
    worker.reset(new UcxWorker(std::move(context), handle));
    worker->find_listeners(from, to);
    // Another thread may have closed a lower one in the middle of it.
    if (worker->listeners_.empty()) worker->find_listeners(0, descriptors_end());
    known_listeners().insert(worker->listeners_.begin(), worker->listeners_.end());
  }
  if (const auto error = ucp_worker_get_efd(handle, &worker->event_fd_); error != UCS_OK) {
    return status_from_ucx(error, "a UCX worker has no event descriptor");
  }
  return worker;
}

void UcxWorker::find_listeners(int from, int to) {
  auto listeners = listening_tcp_sockets(from, to);
  std::erase_if(listeners, [](int fd) { return known_listeners().contains(fd); });
  // Another thread may have opened a port of its own meanwhile: ours are in our address.
  if (const auto address = this->address())
    listeners_ = sockets_in_address(listeners, address.value());
}

UcxWorker::~UcxWorker() {
  {
    const std::lock_guard lock(listeners_mutex);
    for (const int listener : listeners_) known_listeners().erase(listener);
  }
  ucp_worker_destroy(handle_);
}

Status UcxWorker::set_handler(unsigned id, UcxMessageHandler& handler) {
  ucp_am_handler_param_t params{};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = id;
  params.flags = UCP_AM_FLAG_WHOLE_MSG;
  params.cb = receive;
  params.arg = &handler;
  if (const auto error = ucp_worker_set_am_recv_handler(handle_, &params); error != UCS_OK) {
    return status_from_ucx(error, "cannot set a handler of active messages");
  }
  return Status::ok();
}

Result<std::vector<uint8_t>> UcxWorker::address() const {
  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  if (const auto error = ucp_worker_get_address(handle_, &address, &bytes); error != UCS_OK) {
    return status_from_ucx(error, "a UCX worker has no address");
  }
  const auto* begin = reinterpret_cast<const uint8_t*>(address);
  std::vector<uint8_t> copy(begin, begin + bytes);
  ucp_worker_release_address(handle_, address);
  return copy;
}

void UcxWorker::stop_listening() {
  for (const int listener : listeners_) drop_strangers(listener);
}

bool UcxWorker::arm() {
  // Any other error would leave the worker unarmed; progressing again is right for it too.
  return ucp_worker_arm(handle_) == UCS_OK;
}

}  // namespace braid
