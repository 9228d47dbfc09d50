// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/flow_channel.h"

namespace braid {

struct IoContext;

// A connection to a flow of another node, over a channel.
//
//   Opening ──(the other side has answered)──► Open ──┐
//      └───────────────(error)────────────────────────┴──► Failed (inert; its owner destroys it)
//
// I/O loop only. Its FlowDriver progresses and arms the channel.
class Flow : public FlowChannelHandler {
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

  // Messages may be sent, and the driver progresses its channel.
  bool is_connected() const { return channel_ != nullptr && channel_->is_connected(); }
  // Our end's address.
  const std::vector<uint8_t>& address() const { return channel_->address(); }
  std::optional<SocketState> socket_state() const {
    return is_connected() ? channel_->socket_state() : std::nullopt;
  }

  // An error was met. The driver tells the owner (on_failed) once no call of the channel is under
  // way.
  void fail(const Status& error);

  // Nothing is heard of it from now on; its connection goes with the object.
  void retire();

  // --- the driver's side ---
  FlowChannel& channel() { return *channel_; }
  // The channel's messages have been taken: the moment to acknowledge.
  virtual void after_progress() {}
  // Called once, outside the channel; the flow may be destroyed from within.
  virtual void on_failed() = 0;
  bool is_dirty = false;  // in the driver's list
  bool has_moved_since_tick = false;

  // --- FlowChannelHandler ---
  void on_work() override;
  void on_channel_error(const Status& error) override { fail(error); }
  void on_connected() override;

 protected:
  void take_channel(std::unique_ptr<FlowChannel> channel);
  void set_open() {
    state_ = State::Open;
    was_open_ = true;
    channel_->shut();
  }
  // Breaks the connection; sends in progress end from within, and nothing reads their memory any
  // more. For destructors of subclasses, whose memory those sends use.
  void close();
  bool is_closing() const { return is_closing_; }

  IoContext& io_;

 private:
  const std::string description_;
  State state_ = State::Opening;
  bool was_open_ = false;
  bool is_closing_ = false;
  Status error_;
  std::unique_ptr<FlowChannel> channel_;
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
