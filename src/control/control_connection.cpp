// SPDX-License-Identifier: Apache-2.0
#include "control/control_connection.h"

#include <algorithm>

namespace braid {

ControlConnection::ControlConnection(Loop& loop, HandshakeRole role, HandshakeOptions options,
                                     State state, const SocketAddress& remote,
                                     std::unique_ptr<TcpStream> stream,
                                     ControlConnectionOwner& owner)
    : loop_(loop),
      role_(role),
      state_(state),
      remote_(remote),
      stream_(std::move(stream)),
      handshake_(std::make_unique<Handshake>(role, std::move(options))),
      owner_(&owner) {}

std::unique_ptr<ControlConnection> ControlConnection::connect(Loop& loop,
                                                              const SocketAddress& address,
                                                              HandshakeOptions options,
                                                              uint32_t deadline_ms,
                                                              ControlConnectionOwner& owner) {
  std::unique_ptr<ControlConnection> connection(new ControlConnection(
      loop, HandshakeRole::Client, std::move(options), State::Connecting, address,
      std::make_unique<TcpStream>(loop, kControlStreamBytesMax), owner));
  connection->start_deadline(deadline_ms);
  connection->stream_->connect(address, *connection);
  return connection;
}

std::unique_ptr<ControlConnection> ControlConnection::accept(Loop& loop,
                                                             std::unique_ptr<TcpStream> stream,
                                                             HandshakeOptions options,
                                                             uint32_t deadline_ms,
                                                             ControlConnectionOwner& owner) {
  const auto remote = stream->remote_address();
  if (!remote) return nullptr;  // gone before it was accepted
  std::unique_ptr<ControlConnection> connection(
      new ControlConnection(loop, HandshakeRole::Server, std::move(options), State::Handshaking,
                            *remote, std::move(stream), owner));
  connection->start_deadline(deadline_ms);
  connection->stream_->start(*connection);
  return connection;
}

void ControlConnection::start_deadline(uint32_t deadline_ms) {
  deadline_ = std::make_unique<Timer>(loop_);
  deadline_->start_once(deadline_ms, [this, deadline_ms] {
    const bool is_connecting = state_ == State::Connecting;
    const char* missing = is_connecting ? "does not answer" : "did not complete the handshake";
    fail(Status(StatusCode::DeadlineExceeded, fmt::format("{} within {} ms", missing, deadline_ms),
                is_connecting ? UV_ETIMEDOUT : 0));
  });
}

void ControlConnection::close() {
  state_ = State::Closed;
  stream_.reset();
  deadline_.reset();
}

void ControlConnection::discard(std::unique_ptr<ControlConnection> connection) {
  connection->close();
  Loop& loop = connection->loop_;
  destroy_later(loop, std::move(connection));
}

void ControlConnection::fail(const Status& reason) {
  if (state_ == State::Closed) return;
  close();
  owner_->on_broken(*this, reason);
}

void ControlConnection::on_connected() {
  state_ = State::Handshaking;
  write_frame(handshake_->hello());
}

void ControlConnection::on_end(const Status& reason) { fail(reason); }

void ControlConnection::on_bytes(std::span<const uint8_t> bytes) {
  received_bytes_ += bytes.size();
  // What is done with one frame may close this connection; it still exists then (the owner destroys
  // it later).
  while (state_ != State::Closed && !bytes.empty()) {
    const Result<bool> complete = reader_.read(bytes);
    if (!complete) {
      fail(state_ == State::Established
               ? complete.status()
               : complete.status().with_context("it does not speak braid's control protocol"));
    } else if (*complete) {
      take_frame(reader_.frame());
    }
  }
}

void ControlConnection::take_frame(std::span<uint8_t> frame) {
  if (state_ == State::Handshaking) {
    take_handshake_frame(frame);
  } else {
    take_message(frame);
  }
}

void ControlConnection::take_handshake_frame(std::span<const uint8_t> frame) {
  Handshake::Step step = handshake_->receive(frame);
  if (!step.reply.empty()) write_frame(step.reply);
  if (!step.error) {
    const Peer& claimed = handshake_->peer();
    fail(claimed.id == 0
             ? step.error
             : step.error.with_context(fmt::format("it says that it is node '{}'", claimed.name)));
    return;
  }
  if (!handshake_->is_done()) return;
  peer_ = handshake_->peer();
  peer_braid_version_ = handshake_->peer_braid_version();
  generations_ = handshake_->generations();
  const FrameProtection protection = handshake_->frame_protection();
  sending_.emplace(handshake_->frame_keys().sending, protection);
  receiving_.emplace(handshake_->frame_keys().receiving, protection);
  handshake_.reset();
  deadline_.reset();
  reader_.set_frame_bytes_max(kControlFrameBytesMax);
  state_ = State::Established;
  owner_->on_established(*this);
}

void ControlConnection::take_message(std::span<uint8_t> frame) {
  const Result<FrameSeal::Opened> opened = receiving_->open(frame);
  if (!opened) return fail(opened.status());
  const std::span<const uint8_t> bytes = opened->message;
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  if (!verifier.VerifyBuffer<proto::ControlMessage>(nullptr)) {
    fail({StatusCode::Protocol, "it sent bytes that are no control message"});
    return;
  }
  const auto& message = *flatbuffers::GetRoot<proto::ControlMessage>(bytes.data());
  switch (message.body_type()) {
    case proto::ControlBody::NONE:
    case proto::ControlBody::ClientHello:
    case proto::ControlBody::ServerHello:
    case proto::ControlBody::ClientProof:
    case proto::ControlBody::HandshakeAccepted:
    case proto::ControlBody::HandshakeRefused:
      fail({StatusCode::Protocol, "it sent a message of the handshake after its end"});
      return;
    default:
      break;
  }
  if (message.body() == nullptr) {
    fail({StatusCode::Protocol, "it sent a message without a body"});
    return;
  }
  const bool has_number = opened->numbers.sequence != 0;
  const bool is_unnumbered = message.body_type() == proto::ControlBody::Heartbeat ||
                             message.body_type() == proto::ControlBody::Goodbye;
  if (has_number == is_unnumbered && message.body_type() <= proto::ControlBody::MAX) {
    fail(make_status(StatusCode::Protocol, "it sent {} {} a number",
                     proto::EnumNameControlBody(message.body_type()),
                     has_number ? "with" : "without"));
    return;
  }
  owner_->on_message(*this, opened->numbers, message, bytes.size());
}

void ControlConnection::write_frame(std::span<const uint8_t> frame) {
  const auto header = control_frame_header(frame.size());
  const Status status = stream_->write({header, frame});
  BRAID_ASSERT(status.is_ok(), "the few frames of a handshake fit any queue");
  written_bytes_ += header.size() + frame.size();
}

bool ControlConnection::has_taken_more() {
  if (stream_ == nullptr || noted_taken_ == messages_end_) return false;
  const uint64_t waiting = std::min<uint64_t>(stream_->unacknowledged_bytes(), written_bytes_);
  const uint64_t taken = std::min(written_bytes_ - waiting, messages_end_);
  const bool is_more = taken > noted_taken_;
  noted_taken_ = std::max(taken, noted_taken_);
  return is_more;
}

Status ControlConnection::send(const FrameNumbers& numbers, std::span<const uint8_t> message) {
  BRAID_ASSERT(state_ != State::Handshaking && state_ != State::Connecting,
               "messages are sent after the handshake");
  if (state_ == State::Closed || deadline_ != nullptr)
    return {StatusCode::Unavailable, "its control connection is closed"};
  const Result<FrameSeal::Sealed> sealed = sending_->seal(numbers, message);
  Status written =
      sealed ? stream_->write({sealed->head, sealed->message, sealed->tag}) : sealed.status();
  if (!written) {
    // The peer would miss a frame that was sealed and not sent. Not from within this call.
    deadline_ = std::make_unique<Timer>(loop_);
    deadline_->start_once(0, [this, written] { fail(written); });
    return written;
  }
  written_bytes_ += sealed->head.size() + message.size() + sealed->tag.size();
  if (numbers.sequence != 0) messages_end_ = written_bytes_;
  return written;
}

}  // namespace braid
