// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ucp/api/ucp.h>

#include "base/status.h"
#include "net/ucx/tcp_worker_address.h"
#include "net/ucx/ucx_context.h"
#include "net/ucx/ucx_sockets.h"

namespace braid {

// Takes the active messages that arrive at a worker, from whomever they come. Called from within
// progress().
class UcxMessageHandler {
 public:
  virtual ~UcxMessageHandler() = default;
  // `is_whole`: `payload` holds the message; otherwise its sender used a protocol that braid does
  // not speak. Both are valid during the call only.
  virtual void on_message(std::span<const uint8_t> header, std::span<const uint8_t> payload,
                          bool is_whole) = 0;
};

// A UCX worker: one set of sockets, driven by its event descriptor. Used by one thread at a time.
class UcxWorker {
 public:
  // Where `context` has TCP, the other side has to know `proof_key` to connect; `strangers`
  // counts those that did not, and outlives the worker. `segment_bytes`: see UcxSockets.
  static Result<std::unique_ptr<UcxWorker>> create(std::shared_ptr<UcxContext> context,
                                                   const Sha256Digest& proof_key,
                                                   std::atomic<uint64_t>& strangers,
                                                   int segment_bytes = 0);
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;
  ~UcxWorker();  // its endpoints must be closed

  // Messages with `id` go to `handler`, until forget_handler().
  Status set_handler(unsigned id, UcxMessageHandler& handler);
  // Messages that still come are dropped.
  void forget_handler() { handler_ = nullptr; }
  // What the other side has to know of it: on TCP alone the parts of its address, else the whole.
  const std::vector<uint8_t>& address() const { return address_; }
  // What UCX has to be told of the other worker, whose address() is `remote`. Protocol: it is none.
  Result<std::vector<uint8_t>> whole_address(std::span<const uint8_t> remote) const;

  // Readable when there is something to progress; meaningful once arm() has returned true.
  int event_fd() const { return event_fd_; }
  // Does what can be done without waiting; 0 when there was nothing.
  unsigned progress();
  // After progress() has returned 0: true if the caller may sleep on event_fd(), false if there is
  // more to progress.
  bool arm();

  // The one connection that the worker is for stands: nobody else finds a port to connect to.
  void shut() { sockets_.shut(); }

  ucp_worker_h handle() const { return handle_; }
  UcxSockets& sockets() { return sockets_; }
  const UcxContext& context() const { return *context_; }

 private:
  UcxWorker(std::shared_ptr<UcxContext> context, const Sha256Digest& proof_key,
            std::atomic<uint64_t>& strangers, int segment_bytes)
      : context_(std::move(context)),
        sockets_(proof_key, context_->rail(), strangers, segment_bytes) {}
  Status read_address();
  static ucs_status_t receive(void* worker, const void* header, size_t header_bytes, void* payload,
                              size_t payload_bytes, const ucp_am_recv_param_t* param);

  const std::shared_ptr<UcxContext> context_;
  UcxSockets sockets_;
  ucp_worker_h handle_ = nullptr;
  int event_fd_ = -1;
  std::optional<TcpWorkerAddress> tcp_;  // on TCP alone
  std::vector<uint8_t> address_;
  UcxMessageHandler* handler_ = nullptr;
};

}  // namespace braid
