// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "loop/poll.h"
#include "net/flow_channel.h"
#include "net/flow_proof.h"
#include "net/tcp/flow_listener.h"
#include "net/tcp/incoming_messages.h"
#include "net/tcp/outgoing_messages.h"
#include "net/tcp/tcp_rail.h"

namespace braid {

// A flow over one TCP socket.
//
//   sends chunks                               takes chunks
//   connect(): to the address in the answer    the listener waits for its token
//   greeting, first messages ────────────────► proof is checked, the channel is connected
//   the other's proof is checked ◄──────────── its own proof, acknowledgements
//
// So a flow is open one round trip after TCP's own. Messages follow each other as bytes, the header
// first; with a cipher key as encrypted records (SealedRecord), in both directions.
class TcpChannel final : public FlowChannel, private OutgoingMessages::Owner {
 public:
  // All but `request` outlive the channel.
  TcpChannel(Loop& loop, const TcpRail& rail, FlowListener& listener, ReadBuffer& buffer,
             const ChannelRequest& request);
  ~TcpChannel() override;

  void start(FlowChannelHandler& handler) override;
  const std::vector<uint8_t>& address() const override { return address_; }
  void connect(std::vector<uint8_t> remote_address) override;
  bool is_connected() const override { return is_connected_; }
  SendResult send(std::span<const uint8_t> header, std::span<const uint8_t> payload,
                  uint64_t token) override;
  bool progress() override;
  bool arm() override { return true; }
  void shut() override {}
  void retire() override;
  void close() override;
  std::optional<SocketState> socket_state() const override;

 private:
  Status begin_connecting(const std::vector<uint8_t>& remote_address);
  Status watch();
  void on_socket(int events);
  void finish_connecting();
  void take(Fd socket, const FlowSalts& salts);
  void greet();
  void begin_sending(std::span<const uint8_t> greeting);
  void begin_reading();
  void flush();
  bool read();
  bool read_answer();
  bool is_answer_right();
  void fail(const Status& error);
  void on_sent(uint64_t token) override;

  Loop& loop_;
  const TcpRail& rail_;
  FlowListener& listener_;
  ReadBuffer& buffer_;
  const ChannelRole role_;
  const uint64_t token_;
  const Sha256Digest proof_key_;
  const std::optional<Sha256Digest> cipher_key_;
  const int segment_bytes_;
  const std::vector<uint8_t> address_;
  FlowChannelHandler* handler_ = nullptr;
  // These two are there while messages may come, or be sent.
  std::unique_ptr<IncomingMessages> incoming_;
  std::unique_ptr<OutgoingMessages> outgoing_;
  Fd socket_;
  std::unique_ptr<Poll> poll_;  // goes before the socket
  uint16_t port_ = 0;           // of the listening side
  bool is_connected_ = false;
  bool is_readable_ = false;  // as far as is known
  bool is_full_ = false;      // the socket has no room
  // SendsChunks: with the salt, if it is encrypted.
  std::array<uint8_t, sizeof(FlowGreeting) + FlowSalts::kBytes> greeting_{};
  FlowSalts salts_;
  std::array<uint8_t, kFlowProofBytes + FlowSalts::kBytes>
      answer_{};  // SendsChunks: what came of it
  size_t answered_ = 0;
};

}  // namespace braid
