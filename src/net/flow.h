// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "loop/poll.h"
#include "net/ucx_endpoint.h"
#include "net/ucx_worker.h"
#include "net/ucx_worker_maker.h"

namespace braid {

struct IoContext;

// A connection to a flow of another node: one UCX worker with one endpoint, so one socket (or one
// queue pair).
//
//   Opening ──(the other side has answered)──► Open ──┐
//      └───────────────(error)────────────────────────┴──► Failed (inert; its owner destroys it)
//
// I/O loop only. Its FlowDriver progresses and arms the worker.
class Flow : public UcxMessageHandler, public UcxEndpointHandler {
 public:
  enum class State : uint8_t { Opening, Open, Failed };

  Flow(IoContext& io, std::string description);
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;
  ~Flow() override;

  State state() const { return state_; }
  bool was_open() const { return was_open_; }
  const Status& error() const { return error_; }  // why it failed
  const std::string& description() const {
    return description_;
  }  // "flow 3 to node 'b' on rail eth0"

  // It has an endpoint, and the driver progresses its worker.
  bool is_connected() const { return endpoint_ != nullptr; }
  // Our worker's address; not while it is being connected.
  const std::vector<uint8_t>& address() const { return worker_->address(); }

  // An error was met. The driver tells the owner (on_failed) once no UCX call is under way.
  void fail(const Status& error);

  // Nothing is heard of it from now on; its connection and its worker go with the object.
  void retire();

  // --- the driver's side: of connected flows, but for on_failed ---
  UcxWorker& worker() { return *worker_; }
  // The worker's messages have been taken: the moment to acknowledge.
  virtual void after_progress() {}
  // Called once, outside UCX; the flow may be destroyed from within.
  virtual void on_failed() = 0;
  bool is_dirty = false;  // in the driver's list
  bool has_moved_since_tick = false;

  // --- UcxEndpointHandler ---
  void on_endpoint_error(const Status& error) override { fail(error); }

 protected:
  // What is said to it waits until it is connected.
  void take_worker(std::unique_ptr<UcxWorker> worker) { worker_ = std::move(worker); }
  // Off the loop, then take_connection() and on_connected(), or fail().
  void connect_worker(std::vector<uint8_t> remote_address, unsigned message_id);
  // Messages with `message_id` that reach the worker come to on_message.
  Status take_connection(UcxConnection connection, unsigned message_id);
  virtual void on_connected() {}
  void set_open() {
    state_ = State::Open;
    was_open_ = true;
    worker_->shut();
  }
  // Breaks the connection and gives the worker away; sends in progress end from within, and nothing
  // reads their memory any more. For destructors of subclasses, whose memory those sends use.
  void close();
  bool is_closing() const { return is_closing_; }
  UcxEndpoint* endpoint() { return endpoint_.get(); }

  IoContext& io_;

 private:
  const std::string description_;
  State state_ = State::Opening;
  bool was_open_ = false;
  bool is_closing_ = false;
  Status error_;
  std::unique_ptr<UcxWorker> worker_;
  std::unique_ptr<UcxEndpoint> endpoint_;
  std::unique_ptr<Poll> poll_;  // of the worker's event descriptor: goes before the worker
};

constexpr const char* to_string(Flow::State state) {
  switch (state) {
    case Flow::State::Opening:
      return "opening";
    case Flow::State::Open:
      return "open";
    case Flow::State::Failed:
      return "failed";
  }
  return "?";
}

}  // namespace braid
