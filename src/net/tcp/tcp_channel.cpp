// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/tcp_channel.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/random.h"
#include "loop/tcp_segments.h"
#include "loop/tcp_timers.h"
#include "net/tcp/flow_address.h"
#include "net/tcp/message_reader.h"
#include "net/tcp/sealed_queue.h"
#include "net/tcp/sealed_reader.h"
#include "net/tcp/send_queue.h"
#include "net/tcp/socket_state.h"

namespace braid {
namespace {

// A message of the channel's own; those of flows have smaller ones.
constexpr uint64_t kGreetingToken = UINT64_MAX;

size_t header_bytes_of(ChannelRole role) {
  return role == ChannelRole::SendsChunks ? sizeof(proto::AckHeader) : sizeof(proto::ChunkHeader);
}

void set_up(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  shorten_tcp_timers(socket);
}

}  // namespace

TcpChannel::TcpChannel(Loop& loop, const TcpRail& rail, FlowListener& listener, ReadBuffer& buffer,
                       const ChannelRequest& request)
    : loop_(loop),
      rail_(rail),
      listener_(listener),
      buffer_(buffer),
      role_(request.role),
      token_(request.token),
      proof_key_(request.proof_key),
      cipher_key_(request.cipher_key),
      segment_bytes_(request.segment_bytes),
      address_(flow_address(listener.address())) {}

TcpChannel::~TcpChannel() { close(); }

void TcpChannel::start(FlowChannelHandler& handler) {
  handler_ = &handler;
  if (role_ != ChannelRole::TakesChunks) return;
  listener_.expect(
      token_, proof_key_, cipher_key_.has_value(),
      [this](Fd connection, const FlowSalts& salts) { take(std::move(connection), salts); });
}

void TcpChannel::connect(std::vector<uint8_t> remote_address) {
  const Status begun = begin_connecting(remote_address);
  if (!begun) handler_->on_channel_error(begun);
}

Status TcpChannel::begin_connecting(const std::vector<uint8_t>& remote_address) {
  const auto to = read_flow_address(remote_address, rail_.name);
  if (!to) return {StatusCode::Protocol, "the other node's answer holds no TCP address"};
  auto socket = rail_.socket_to(*to);
  if (!socket) return socket.status();
  socket_ = std::move(*socket);
  port_ = to->port();
  set_up(socket_.get());
  limit_tcp_segments(socket_.get(), segment_bytes_);
  if (::connect(socket_.get(), to->get(), to->bytes()) != 0 && errno != EINPROGRESS)
    return Status::from_errno(errno, "cannot connect to " + to->to_string());
  return watch();
}

void TcpChannel::take(Fd socket, const FlowSalts& salts) {
  socket_ = std::move(socket);
  salts_ = salts;
  begin_sending({});
  begin_reading();
  set_up(socket_.get());
  is_connected_ = true;
  is_readable_ = true;  // the first message has come with the greeting
  if (const Status watched = watch(); !watched) return fail(watched);
  handler_->on_connected();
}

Status TcpChannel::watch() {
  auto poll = Poll::create(loop_, socket_.get());
  if (!poll) return poll.status();
  poll_ = std::move(*poll);
  poll_->start(is_connected_ ? UV_READABLE : UV_WRITABLE,
               [this](int events) { on_socket(events); });
  return Status::ok();
}

void TcpChannel::on_socket(int events) {
  if (!is_connected_) return finish_connecting();
  // An error is met by the call that it is for.
  if (events < 0 || (events & UV_READABLE) != 0) is_readable_ = true;
  if (is_full_ && (events < 0 || (events & UV_WRITABLE) != 0)) {
    is_full_ = false;
    poll_->change(UV_READABLE);
  }
  handler_->on_work();
}

void TcpChannel::finish_connecting() {
  int error = 0;
  socklen_t bytes = sizeof(error);
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
  if (error != 0) return fail(Status::from_errno(error, "cannot reach the other node"));
  is_connected_ = true;
  poll_->change(UV_READABLE);
  greet();
  handler_->on_connected();
}

void TcpChannel::greet() {
  const auto side = FlowProofOf::Connecting;
  FlowGreeting greeting;
  greeting.token = token_;
  std::span<const uint8_t> salt;
  if (cipher_key_) {
    greeting.version = FlowGreeting::kEncrypted;
    fill_random(salts_.own(side));
    salt = salts_.own(side);
  }
  greeting.proof = flow_proof(proof_key_, side, port_, salt);
  std::memcpy(greeting_.data(), &greeting, sizeof(greeting));
  std::ranges::copy(salt, greeting_.begin() + sizeof(greeting));
  begin_sending(std::span(greeting_).first(sizeof(greeting) + salt.size()));
}

void TcpChannel::begin_sending(std::span<const uint8_t> greeting) {
  if (cipher_key_) {
    const auto side =
        role_ == ChannelRole::SendsChunks ? FlowProofOf::Connecting : FlowProofOf::Listening;
    outgoing_ = std::make_unique<SealedQueue>(
        RecordCipher(flow_record_key(*cipher_key_, side, salts_)), greeting);
    return;
  }
  outgoing_ = std::make_unique<SendQueue>();
  if (!greeting.empty()) outgoing_->push(greeting, {}, kGreetingToken);
}

void TcpChannel::begin_reading() {
  const size_t header_bytes = header_bytes_of(role_);
  if (cipher_key_) {
    const auto side =
        role_ == ChannelRole::SendsChunks ? FlowProofOf::Listening : FlowProofOf::Connecting;
    incoming_ = std::make_unique<SealedReader>(
        *handler_, header_bytes, RecordCipher(flow_record_key(*cipher_key_, side, salts_)));
  } else {
    incoming_ = std::make_unique<MessageReader>(*handler_, header_bytes);
  }
}

FlowChannel::SendResult TcpChannel::send(std::span<const uint8_t> header,
                                         std::span<const uint8_t> payload, uint64_t token) {
  // Messages of one round go by one system call, at the next progress().
  outgoing_->push(header, payload, token);
  handler_->on_work();
  return SendResult::InProgress;
}

bool TcpChannel::progress() {
  if (!is_connected_) return false;
  flush();
  return read();
}

void TcpChannel::on_sent(uint64_t token) {
  if (token != kGreetingToken) handler_->on_send_done(token, Status::ok());
}

void TcpChannel::flush() {
  if (outgoing_->empty() || is_full_) return;
  switch (outgoing_->flush(socket_.get(), *this)) {
    case OutgoingMessages::Outcome::Empty:
      return;
    case OutgoingMessages::Outcome::Full:
      is_full_ = true;
      poll_->change(UV_READABLE | UV_WRITABLE);
      return;
    case OutgoingMessages::Outcome::Failed:
      fail(outgoing_->error());
      return;
  }
}

// True: there may be more.
bool TcpChannel::read() {
  if (!is_readable_) return false;
  if (incoming_ == nullptr && !read_answer()) return false;
  const auto outcome = incoming_->read(socket_.get(), buffer_);
  is_readable_ = outcome == IncomingMessages::Outcome::More;
  return is_readable_;
}

// The other side's proof, before anything that it says is heard.
bool TcpChannel::read_answer() {
  const size_t bytes = kFlowProofBytes + (cipher_key_ ? FlowSalts::kBytes : 0);
  const ssize_t received =
      ::recv(socket_.get(), answer_.data() + answered_, bytes - answered_, MSG_DONTWAIT);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) {
    is_readable_ = false;
    return false;
  }
  if (received <= 0) {
    fail({StatusCode::Unavailable, "the other side closed the connection before it had answered"});
    return false;
  }
  answered_ += static_cast<size_t>(received);
  if (answered_ < bytes) return false;
  if (!is_answer_right()) {
    fail({StatusCode::PermissionDenied, "who listens there does not hold the flow's key"});
    return false;
  }
  begin_reading();
  return true;
}

bool TcpChannel::is_answer_right() {
  const auto side = FlowProofOf::Listening;
  const auto proof = std::span(answer_).first<kFlowProofBytes>();
  std::span<const uint8_t> salts;
  if (cipher_key_) {
    std::ranges::copy(std::span(answer_).subspan(proof.size()), salts_.own(side).begin());
    salts = salts_.known_to(side);
  }
  return equal_in_constant_time(proof, flow_proof(proof_key_, side, port_, salts));
}

void TcpChannel::fail(const Status& error) {
  is_readable_ = false;
  handler_->on_channel_error(error);
}

void TcpChannel::retire() {
  if (role_ == ChannelRole::TakesChunks && handler_ != nullptr) listener_.forget(token_);
  poll_.reset();
}

void TcpChannel::close() {
  retire();
  if (!socket_.is_valid()) return;
  is_connected_ = false;
  int unacknowledged = 0;
  ::ioctl(socket_.get(), SIOCOUTQ, &unacknowledged);
  if (unacknowledged > 0 || (outgoing_ != nullptr && !outgoing_->empty())) {
    // The kernel drops what it still holds, and tells the other side at once: on a silent path it
    // would go on trying for a quarter of an hour.
    const linger at_once{1, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  }
  socket_.reset();
}

std::optional<SocketState> TcpChannel::socket_state() const {
  if (!is_connected_) return std::nullopt;
  return read_socket_state(socket_.get());
}

}  // namespace braid
