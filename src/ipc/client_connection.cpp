// SPDX-License-Identifier: Apache-2.0
#include "ipc/client_connection.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>

#include "base/log.h"
#include "base/printable.h"
#include "proto/version.h"

namespace braid {
namespace {

constexpr int kFramesOfTheDead = 1024;  // what a dead process may have left in its socket
constexpr uint64_t kProcessEndTimeoutMs =
    100;  // a dying process closes its sockets first, and is dead a little later
constexpr size_t kNameBytesMax = 64;

// Clients choose these texts, and they end up in logs.
std::string text_of(const flatbuffers::String* text) {
  return text == nullptr ? std::string() : printable(text->string_view(), kNameBytesMax);
}

// Empty: the client speaks our protocol.
std::string version_error(const proto::Hello& hello, const ClientServerOptions& options) {
  const uint32_t theirs = hello.protocol_version();
  const uint32_t ours = proto::kClientProtocolVersion;
  if (theirs == ours) return {};
  return fmt::format(
      "client speaks protocol {} (libbraid {}), daemon {} (braidd {}): upgrade {} on node '{}'",
      theirs, text_of(hello.library_version()), ours, options.daemon_version,
      theirs > ours ? "braidd" : "libbraid", options.node_name);
}

std::string describe_process(const ClientCredentials& credentials, const std::string& name) {
  std::string text = credentials.pid > 0 ? fmt::format("process {}", credentials.pid)
                                         : fmt::format("a process of user {}", credentials.uid);
  if (!name.empty()) text += fmt::format(" ('{}')", name);
  return text;
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

}  // namespace

ClientConnection::ClientConnection(ClientServer& server, uint64_t id, Fd socket,
                                   ClientCredentials credentials)
    : server_(server),
      id_(id),
      credentials_(credentials),
      socket_(std::move(socket)),
      intake_(credentials.uid, server.options_.quotas, server.closer_, server.checking_.get()),
      writer_(server.options_.send_queue_bytes_max),
      unread_(server.options_.quotas, credentials.uid, UserResource::ReplyBytes),
      deadline_(server.loop_) {}

ClientConnection::~ClientConnection() {
  server_.reading_.drop(credentials_.uid, this);
  socket_poll_.reset();
  server_.drop(std::move(socket_), credentials_.uid);
}

Status ClientConnection::start() {
  auto poll = Poll::create(server_.loop_, socket_.get());
  if (!poll) return poll.status();
  socket_poll_ = std::move(*poll);
  process_ = ProcessWatch::create(server_.loop_, socket_.get(), credentials_.pid,
                                  [this] { on_process_died(); });
  watch_socket();
  deadline_.start_once(server_.options_.hello_timeout_ms, [this] {
    ++server_.counters_.handshakes_timed_out;
    close(make_status(StatusCode::DeadlineExceeded, "{} did not introduce itself within {} ms",
                      describe(), server_.options_.hello_timeout_ms));
  });
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
  switch (intake_.read(socket_.get(), is_open ? kFrameBytesMax : kHelloFrameBytesMax,
                       is_open ? kFrameFdsMax : 0)) {
    case FrameReader::Outcome::Frame:
      handle_frame();
      return true;
    case FrameReader::Outcome::WouldBlock:
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

void ClientConnection::on_read_error() {
  const Status& error = intake_.error();
  if (error.code() == StatusCode::Protocol) {
    close_for_protocol_error(error.message());
  } else if (error.code() == StatusCode::ResourceExhausted) {
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
                              intake_.is_within_frame() ? " in the middle of a message" : "");
  if (process_ == nullptr || state_ != State::Open || is_end_expected_) {
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
  intake_.uncount();
  read_in_turn();
}

void ClientConnection::handle_frame() {
  if (!intake_.needs_check()) return handle_message();
  hold();
  intake_.check([this] {
    is_on_hold_ = false;
    if (state_ == State::Open) handle_message();
    read_in_turn();
  });
}

void ClientConnection::handle_message() {
  const auto bytes = intake_.bytes();  // also when this closes the connection
  if (const proto::ClientMessage* message = intake_.message()) {
    handle_verified(*message, intake_.take_fds());
  } else {
    close_for_protocol_error("bytes that are no message");
  }
  intake_.let_go(is_on_hold_);  // what has put the connection on hold still needs it
}

void ClientConnection::handle_verified(const proto::ClientMessage& message, std::vector<Fd> fds) {
  if (message.body() == nullptr) {
    intake_.give_back(std::move(fds));
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
    intake_.give_back(std::move(fds));
    close_for_protocol_error("a second handshake");
    return;
  }
  if (const Status checked = check_descriptors(message, fds); !checked) {
    intake_.give_back(std::move(fds));
    ++server_.counters_.protocol_errors;
    return fail(checked);
  }
  has_opened_ = has_opened_ || message.body_type() == proto::ClientBody::OpenJob;
  // The last close of a memory frees its pages, which may be very many: so what the handler does
  // not keep is not closed last on the loop.
  std::vector<Fd> again = duplicates_of(fds);
  server_.handler_.on_client_message(*this, message, std::move(fds));
  intake_.give_back(std::move(again));
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

void ClientConnection::handle_hello(const proto::ClientMessage& message) {
  const proto::Hello* hello = message.body_as_Hello();
  if (hello == nullptr) {
    close_for_protocol_error(
        fmt::format("{} before Hello", proto::EnumNameClientBody(message.body_type())));
    return;
  }
  process_name_ = text_of(hello->process_name());
  library_version_ = text_of(hello->library_version());
  if (const std::string error = version_error(*hello, server_.options_); !error.empty()) {
    ++server_.counters_.version_mismatches;
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
  process_.reset();
  intake_.drop(is_on_hold_);
  server_.drop(std::move(socket_), credentials_.uid);
  server_.on_closed(*this, std::move(reason));
}

std::string ClientConnection::describe() const {
  return describe_process(credentials_, process_name_);
}

}  // namespace braid
