// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <ucp/api/ucp.h>

#include "base/status.h"
#include "net/ucx/ucx_worker.h"

namespace braid {

// Told what happens on an endpoint, from within the worker's progress (or a send): it may only take
// note.
class UcxEndpointHandler {
 public:
  virtual ~UcxEndpointHandler() = default;
  virtual void on_endpoint_error(const Status& error) = 0;
  // A send that did not end within send() has ended; its memory is the caller's again.
  virtual void on_send_done(uint64_t token, const Status& status) = 0;
};

// The way to one remote worker. The worker must outlive it; so must the handler, if there is one.
class UcxEndpoint {
 public:
  enum class SendResult : uint8_t { Done, InProgress, Failed };

  // On the thread that uses the worker meanwhile: it takes UCX a millisecond or more.
  static Result<std::unique_ptr<UcxEndpoint>> create(UcxWorker& worker,
                                                     std::span<const uint8_t> remote_address);
  UcxEndpoint(const UcxEndpoint&) = delete;
  UcxEndpoint& operator=(const UcxEndpoint&) = delete;
  // Before the first send. An error that was met already is told from within this call.
  void set_handler(UcxEndpointHandler& handler);

  // Breaks the connection, for good. Sends that are still on their way end (their callbacks come
  // from within this call), and the worker is progressed until they have, for kCloseTimeoutMs at
  // most. False: they have not, and UCX may read their memory until the worker is destroyed.
  bool close();
  ~UcxEndpoint();  // closes it

  // Sends an eager active message. `header` and `payload` must stay until it has ended: on
  // InProgress that is when on_send_done(token) comes. Failed means that on_endpoint_error was
  // called.
  SendResult send(unsigned id, std::span<const uint8_t> header, std::span<const uint8_t> payload,
                  uint64_t token);

 private:
  static constexpr uint64_t kCloseTimeoutMs = 200;

  explicit UcxEndpoint(UcxWorker& worker) : worker_(worker) {}
  void on_error(const Status& error);
  Status explain(Status error) const;
  static void send_done(void* request, ucs_status_t status, void* endpoint);

  UcxWorker& worker_;
  UcxEndpointHandler* handler_ = nullptr;
  Status early_error_;  // met while there was no handler
  ucp_ep_h handle_ = nullptr;
  size_t sends_in_progress_ = 0;
};

}  // namespace braid
