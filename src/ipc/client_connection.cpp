// SPDX-License-Identifier: Apache-2.0
#include "ipc/client_connection.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/printable.h"
#include "ipc/rings.h"
#include "ipc/shared_memory.h"
#include "proto/version.h"

// Since Linux 6.5: the pidfd of exactly the process that connected.
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace braid {
namespace {

constexpr int kFramesOfTheDead = 1024;  // what a dead process may have left in its socket
constexpr uint64_t kProcessEndTimeoutMs =
    100;  // a dying process closes its sockets first, and is dead a little later
constexpr size_t kNameBytesMax = 64;
constexpr size_t kCheckedOnLoopMax = 64 << 10;  // bytes of a message; larger ones go elsewhere

// How many descriptors belong to a message.
size_t fds_of(proto::ClientBody body) {
  switch (body) {
    case proto::ClientBody::OpenJob:
      return 3;  // input arena, rings, the submit ring's wake-up
    case proto::ClientBody::RegisterMemory:
      return 1;  // input arena
    default:
      return 0;
  }
}

// Clients choose these texts, and they end up in logs.
std::string text_of(const flatbuffers::String* text) {
  return text == nullptr ? std::string() : printable(text->string_view(), kNameBytesMax);
}

Fd open_pidfd(int socket, pid_t pid) {
  int fd = -1;
  socklen_t length = sizeof(fd);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &length) == 0) return Fd(fd);
  if (pid <= 0) return {};
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// Those that the process has no more descriptors for are missing.
std::vector<Fd> duplicates_of(const std::vector<Fd>& fds) {
  std::vector<Fd> duplicates;
  for (const Fd& fd : fds) {
    if (Fd duplicate(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); duplicate.is_valid())
      duplicates.push_back(std::move(duplicate));
  }
  return duplicates;
}

bool is_client_message(const std::vector<uint8_t>& bytes) {
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  return proto::VerifyClientMessageBuffer(verifier);
}

}  // namespace

ClientConnection::ClientConnection(ClientServer& server, uint64_t id, Fd socket,
                                   ClientCredentials credentials)
    : server_(server),
      id_(id),
      credentials_(credentials),
      socket_(std::move(socket)),
      writer_(server.options_.send_queue_bytes_max),
      unread_(server.options_.quotas, credentials.uid, UserResource::ReplyBytes),
      message_charge_(server.options_.quotas, credentials.uid, UserResource::BufferBytes),
      deadline_(server.loop_) {}

ClientConnection::~ClientConnection() {
  server_.reading_.drop(credentials_.uid, this);
  socket_poll_.reset();
  drop_messages();
  server_.drop(std::move(socket_), credentials_.uid);
}

Status ClientConnection::start() {
  auto poll = Poll::create(server_.loop_, socket_.get());
  if (!poll) return poll.status();
  socket_poll_ = std::move(*poll);
  BRAID_RETURN_IF_ERROR(watch_process());
  watch_socket();
  deadline_.start_once(server_.options_.hello_timeout_ms, [this] {
    ++server_.counters_.handshakes_timed_out;
    close(make_status(StatusCode::DeadlineExceeded, "{} did not introduce itself within {} ms",
                      describe(), server_.options_.hello_timeout_ms));
  });
  return Status::ok();
}

// The socket alone does not tell: children that the trainer forked hold it open when the trainer is
// dead.
Status ClientConnection::watch_process() {
  process_ = open_pidfd(socket_.get(), credentials_.pid);
  if (!process_.is_valid()) return Status::ok();  // other pid namespace, or old kernel: EOF must do
  auto poll = Poll::create(server_.loop_, process_.get());
  if (!poll) return Status::ok();
  process_poll_ = std::move(*poll);
  process_poll_->start(UV_READABLE, [this](int) { on_process_died(); });
  return Status::ok();
}

void ClientConnection::watch_socket() {
  if (state_ == State::Closed) return;
  const bool reads = may_read() && !is_reading_;
  const int events =
      (reads ? UV_READABLE : 0) | (can_write_ && !writer_.is_empty() ? UV_WRITABLE : 0);
  if (events == watched_events_) return;
  watched_events_ = events;
  if (events == 0) {
    socket_poll_->stop();
  } else {
    socket_poll_->start(events, [this](int ready) { on_ready(ready); });
  }
}

void ClientConnection::on_ready(int events) {
  if (events < 0) {
    on_socket_error();
    return;
  }
  if ((events & UV_WRITABLE) != 0) flush();
  if ((events & UV_READABLE) != 0) read_in_turn();
  watch_socket();
}

// libuv says EBADF for every POLLERR, and stops watching. Here it mostly means that the client went
// away and left something unread.
void ClientConnection::on_socket_error() {
  watched_events_ = 0;
  can_write_ = false;
  if (state_ == State::Closing) return close(closing_reason_);
  if (!may_read() || end_) return;
  read_the_rest(make_status(StatusCode::Unavailable, "the connection of {} broke", describe()));
}

void ClientConnection::on_process_died() {
  if (state_ == State::Closed) return;
  is_dead_ = true;
  has_gone_ = true;
  Status reason = make_status(StatusCode::Unavailable, "{} died", describe());
  // What it said before it died counts: a LeaveJob makes this a good end.
  if (state_ != State::Open) return close(state_ == State::Closing ? closing_reason_ : reason);
  process_poll_->stop();
  read_the_rest(std::move(reason));
}

void ClientConnection::read_the_rest(Status reason) {
  end_ = std::move(reason);
  frames_left_ = kFramesOfTheDead;
  read_in_turn();
}

void ClientConnection::read_in_turn() {
  if (is_reading_ || !may_read()) return;
  is_reading_ = true;
  server_.reading_.add(credentials_.uid, this, [this] {
    if (may_read() && read_one() && (!end_ || --frames_left_ > 0) && !is_on_hold_) return true;
    is_reading_ = false;
    if (end_ && !is_on_hold_) {
      finish_reading();
    } else {
      watch_socket();
    }
    return false;
  });
}

// The client is gone, and what it has left behind was read.
void ClientConnection::finish_reading() {
  if (state_ == State::Closed) return;
  if (state_ == State::Closing) return close(closing_reason_);
  if (is_dead_ || state_ != State::PeerGone) close(*end_);
}

bool ClientConnection::read_one() {
  const bool is_open = state_ == State::Open;
  // Nothing can make us take descriptors from who has given too many that nobody can close. A job
  // that runs is not ended for what other processes of its user do, and of its own connection
  // one wrong descriptor is the last.
  if (!has_opened_ && server_.closer_.is_full(credentials_.uid)) {
    refuse_to_hear();
    return false;
  }
  switch (reader_.read(socket_.get(), is_open ? kFrameBytesMax : kHelloFrameBytesMax,
                       is_open ? kFrameFdsMax : 0)) {
    case FrameReader::Outcome::Frame:
      handle_frame(reader_.take());
      return true;
    case FrameReader::Outcome::WouldBlock:
      (void)count_message(reader_.memory_bytes());
      break;
    case FrameReader::Outcome::EndOfStream:
      on_end_of_stream();
      break;
    case FrameReader::Outcome::Error:
      on_read_error();
      break;
  }
  return false;
}

// False: its user has too many of them; the connection is closed.
bool ClientConnection::count_message(uint64_t bytes) {
  const Status room = message_charge_.set(bytes);
  if (room) return true;
  give_back(reader_.take_fds());
  tell_and_close(room.with_context(
      fmt::format("braidd on node '{}': a message that is long", server_.options_.node_name)));
  return false;
}

void ClientConnection::on_read_error() {
  const Status& error = reader_.error();
  if (error.code() == StatusCode::Protocol) {
    close_for_protocol_error(error.message());
  } else if (error.code() == StatusCode::ResourceExhausted) {
    give_back(reader_.take_fds());
    tell_and_close(
        error.with_context(fmt::format("braidd on node '{}'", server_.options_.node_name)));
  } else if (error.cause() == ECONNRESET) {
    on_end_of_stream();
  } else {
    close(error.with_context(describe()));
  }
}

void ClientConnection::on_end_of_stream() {
  has_gone_ = true;
  Status reason = make_status(StatusCode::Unavailable, "{} closed the connection{}", describe(),
                              reader_.is_within_frame() ? " in the middle of a message" : "");
  if (process_poll_ == nullptr || state_ != State::Open || is_end_expected_) {
    close(std::move(reason));
    return;
  }
  state_ = State::PeerGone;
  can_write_ = false;
  deadline_.start_once(kProcessEndTimeoutMs, [this, reason = std::move(reason)] { close(reason); });
  watch_socket();
}

void ClientConnection::hold() {
  is_on_hold_ = true;
  watch_socket();
}

// What has come meanwhile is read, and if it is the end of the stream.
void ClientConnection::resume() {
  if (!is_on_hold_) return;
  is_on_hold_ = false;
  (void)message_charge_.set(0);
  read_in_turn();
}

void ClientConnection::drop_messages() {
  give_back(reader_.take_fds());
  give_back(std::move(message_fds_));
  if (server_.checking_ != nullptr) server_.checking_->drop(credentials_.uid, this);
  let_go_of_message();
}

// To free a large one takes long. What has put the connection on hold still needs it.
void ClientConnection::let_go_of_message() {
  if (!is_on_hold_) (void)message_charge_.set(0);
  if (message_bytes_ == nullptr) return;
  const bool is_large = message_bytes_->size() > kCheckedOnLoopMax;
  if (is_large && server_.checking_ != nullptr)
    server_.checking_->dispose(std::move(message_bytes_));
  message_bytes_.reset();
}

void ClientConnection::handle_frame(Frame frame) {
  if (!count_message(frame.bytes.size())) return give_back(std::move(frame.fds));
  message_bytes_ = std::make_shared<std::vector<uint8_t>>(std::move(frame.bytes));
  if (server_.checking_ == nullptr || message_bytes_->size() <= kCheckedOnLoopMax)
    return handle_message(is_client_message(*message_bytes_), std::move(frame.fds));
  message_fds_ = std::move(frame.fds);
  hold();
  const auto is_message = std::make_shared<bool>(false);
  server_.checking_->run(
      credentials_.uid, this,
      [bytes = message_bytes_, is_message] { *is_message = is_client_message(*bytes); },
      [this, is_message] {
        is_on_hold_ = false;
        if (state_ == State::Open) handle_message(*is_message, std::move(message_fds_));
        read_in_turn();
      });
}

// Descriptors that came with it are in `fds`.
void ClientConnection::handle_message(bool is_message, std::vector<Fd> fds) {
  if (is_message) {
    const auto bytes = message_bytes_;  // also when this closes the connection
    handle_verified(*proto::GetClientMessage(bytes->data()), std::move(fds));
  } else {
    give_back(std::move(fds));
    close_for_protocol_error("bytes that are no message");
  }
  let_go_of_message();
}

void ClientConnection::handle_verified(const proto::ClientMessage& message, std::vector<Fd> fds) {
  if (message.body() == nullptr) {
    give_back(std::move(fds));
    close_for_protocol_error("an empty message");
    return;
  }
  ++server_.counters_.messages_received;
  if (state_ == State::AwaitHello) {
    handle_hello(message);
    return;
  }
  if (message.body_type() == proto::ClientBody::Hello ||
      message.body_type() == proto::ClientBody::HelloReply) {
    give_back(std::move(fds));
    close_for_protocol_error("a second handshake");
    return;
  }
  if (const Status checked = check_descriptors(message, fds); !checked)
    return refuse_descriptors(std::move(fds), checked);
  has_opened_ = has_opened_ || message.body_type() == proto::ClientBody::OpenJob;
  // The last close of a memory frees its pages, which may be very many: so what the handler does
  // not keep is not closed last on the loop.
  std::vector<Fd> again = duplicates_of(fds);
  server_.handler_.on_client_message(*this, message, std::move(fds));
  give_back(std::move(again));
}

// Everything else may take for ever to close, or to be looked at.
Status ClientConnection::check_descriptors(const proto::ClientMessage& message,
                                           const std::vector<Fd>& fds) const {
  const size_t expected = fds_of(message.body_type());
  if (fds.size() != expected) {
    return make_status(StatusCode::Protocol, "{} came with {} descriptors instead of {}",
                       proto::EnumNameClientBody(message.body_type()), fds.size(), expected);
  }
  if (fds.empty()) return Status::ok();
  BRAID_RETURN_IF_ERROR(check_memfd(fds[0].get(), "input arena"));
  if (message.body_type() == proto::ClientBody::RegisterMemory) return Status::ok();
  BRAID_RETURN_IF_ERROR(check_memfd(fds[1].get(), "rings' memory"));
  return check_eventfd(fds[2].get(), "wake-up of the submit ring");
}

void ClientConnection::refuse_descriptors(std::vector<Fd> fds, const Status& reason) {
  give_back(std::move(fds));
  ++server_.counters_.protocol_errors;
  fail(reason);
}

void ClientConnection::refuse_to_hear() {
  const Status reason = make_status(
      StatusCode::ResourceExhausted,
      "braidd is still closing descriptors that user {} has sent and that take long to close",
      credentials_.uid);
  ++server_.counters_.connections_refused;
  tell_and_close(reason);
}

// Before the handshake there is no message for it.
void ClientConnection::tell_and_close(const Status& reason) {
  if (state_ == State::Open) return fail(reason);
  close(reason.with_context(describe()));
}

void ClientConnection::fail(const Status& reason) {
  flatbuffers::FlatBufferBuilder builder;
  const auto failure = proto::CreateFailureDirect(builder, static_cast<uint8_t>(reason.code()),
                                                  reason.message().c_str());
  builder.Finish(proto::CreateClientMessage(builder, proto::ClientBody::Failure, failure.Union()));
  queue(builder, {});
  if (state_ == State::Open) finish_and_close(reason.with_context(describe()));
}

void ClientConnection::give_back(std::vector<Fd> fds) {
  for (Fd& fd : fds) server_.closer_.close(credentials_.uid, std::move(fd));
}

void ClientConnection::handle_hello(const proto::ClientMessage& message) {
  const proto::Hello* hello = message.body_as_Hello();
  if (hello == nullptr) {
    close_for_protocol_error(
        fmt::format("{} before Hello", proto::EnumNameClientBody(message.body_type())));
    return;
  }
  process_name_ = text_of(hello->process_name());
  library_version_ = text_of(hello->library_version());
  const uint32_t theirs = hello->protocol_version();
  const uint32_t ours = proto::kClientProtocolVersion;
  if (theirs != ours) {
    ++server_.counters_.version_mismatches;
    const std::string error = fmt::format(
        "client speaks protocol {} (libbraid {}), daemon {} (braidd {}): upgrade {} on node '{}'",
        theirs, library_version_, ours, server_.options_.daemon_version,
        theirs > ours ? "braidd" : "libbraid", server_.options_.node_name);
    reply_to_hello(error);
    finish_and_close(make_status(StatusCode::Protocol, "{}: {}", describe(), error));
    return;
  }
  deadline_.stop();
  state_ = State::Open;
  reply_to_hello("");
  if (state_ != State::Open) return;
  was_connected_ = true;
  server_.handler_.on_client_connected(*this);
}

void ClientConnection::reply_to_hello(const std::string& error) {
  flatbuffers::FlatBufferBuilder builder;
  ClientServer::build_hello_reply(builder, server_.options_, error);
  queue(builder, {});
}

void ClientConnection::send(flatbuffers::FlatBufferBuilder& message, std::span<const int> fds) {
  BRAID_ASSERT_IN_LOOP(server_.loop_);
  if (state_ == State::Open) queue(message, fds);
}

void ClientConnection::queue(flatbuffers::FlatBufferBuilder& message, std::span<const int> fds) {
  if (!can_write_) return;
  if (const Status status = writer_.push({message.GetBufferPointer(), message.GetSize()}, fds);
      !status) {
    // Where there was no descriptor left for it, words still find their way.
    if (!fds.empty() && state_ == State::Open)
      return fail(status.with_context(
          fmt::format("braidd on node '{}' cannot send", server_.options_.node_name)));
    close(status.with_context(fmt::format("cannot send to {}", describe())));
    return;
  }
  ++server_.counters_.messages_sent;
  flush();
  if (const Status room = unread_.set(writer_.queued_bytes()); !room && state_ != State::Closed) {
    close(room.with_context(fmt::format("cannot send to {}", describe())));
    return;
  }
  watch_socket();
}

void ClientConnection::flush() {
  if (state_ == State::Closed || !can_write_) return;
  const Status flushed = writer_.flush(socket_.get());
  // Less than before, which always goes.
  if (writer_.queued_bytes() < unread_.amount()) (void)unread_.set(writer_.queued_bytes());
  // A client that is gone may have left messages; reading comes to the end of the stream by itself.
  if (!flushed) can_write_ = false;
  if (state_ == State::Closing && (writer_.is_empty() || !can_write_)) close(closing_reason_);
}

void ClientConnection::close_after_send() {
  BRAID_ASSERT_IN_LOOP(server_.loop_);
  if (state_ != State::Open && state_ != State::PeerGone) return;
  finish_and_close(
      make_status(StatusCode::Cancelled, "braidd closed the connection of {}", describe()));
}

void ClientConnection::finish_and_close(Status reason) {
  state_ = State::Closing;
  closing_reason_ = std::move(reason);
  deadline_.start_once(server_.options_.linger_timeout_ms, [this] { close(closing_reason_); });
  flush();
  watch_socket();
  if (state_ == State::Closing && !can_write_) close(closing_reason_);
}

void ClientConnection::close_for_protocol_error(const std::string& what) {
  ++server_.counters_.protocol_errors;
  close(make_status(StatusCode::Protocol, "{} sent {}", describe(), what));
}

void ClientConnection::close(Status reason) {
  if (state_ == State::Closed) return;
  state_ = State::Closed;
  server_.reading_.drop(credentials_.uid, this);
  deadline_.stop();
  socket_poll_.reset();
  process_poll_.reset();
  drop_messages();
  server_.drop(std::move(socket_), credentials_.uid);
  process_.reset();
  server_.on_closed(*this, std::move(reason));
}

std::string ClientConnection::describe() const {
  std::string text = credentials_.pid > 0 ? fmt::format("process {}", credentials_.pid)
                                          : fmt::format("a process of user {}", credentials_.uid);
  if (!process_name_.empty()) text += fmt::format(" ('{}')", process_name_);
  return text;
}

}  // namespace braid
