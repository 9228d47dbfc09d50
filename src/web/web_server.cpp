// SPDX-License-Identifier: Apache-2.0
#include "web/web_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include <arpa/inet.h>
#include <civetweb.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/socket_address.h"
#include "web/ipv6_front.h"
#include "web/web_path.h"

namespace braid {
namespace {

constexpr const char* kBehindFront = "127.0.0.1";
constexpr size_t kPieceBytes = 16 << 10;  // written at once; the clock is looked at in between

// Scripts and styles come from this server alone, and nobody may show the page within his own.
constexpr std::string_view kEveryReply =
    "Connection: close\r\n"
    "Cache-Control: no-store\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n";

// Writes until it is read, or takes too long: civetweb's own limit is for each piece.
void write_all(mg_connection* connection, std::string_view bytes, uint64_t until_ns) {
  while (!bytes.empty() && SystemClock().now_ns() < until_ns) {
    const std::string_view piece = bytes.substr(0, kPieceBytes);
    if (mg_write(connection, piece.data(), piece.size()) != static_cast<int>(piece.size())) return;
    bytes.remove_prefix(piece.size());
  }
}

void send_reply(mg_connection* connection, const WebReply& reply, bool has_body) {
  const uint64_t until_ns =
      SystemClock().now_ns() + uint64_t{WebServer::kReplyTimeoutMs} * 1'000'000;
  const std::string_view body = reply.body == nullptr ? std::string_view() : *reply.body;
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
                                 reply.status, mg_get_response_code_text(connection, reply.status),
                                 reply.content_type, body.size());
  head += kEveryReply;
  for (const auto& [name, value] : reply.headers) head += fmt::format("{}: {}\r\n", name, value);
  head += "\r\n";
  write_all(connection, head, until_ns);
  if (has_body) write_all(connection, body, until_ns);
}

std::string header_of(const mg_connection* connection, const char* name) {
  const char* value = mg_get_header(connection, name);
  return value == nullptr ? "" : value;
}

// While it lives, threads that are started take no signals: those are for the daemon's own threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

constexpr int kWakeIntervalMs = 20;

// The HTTP server looks every two seconds whether it should end; a connection makes it look now.
// Returns when `ended`.
void wake_until(const std::atomic<bool>& ended, const std::string& address, uint16_t port) {
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(port);
  ::inet_pton(AF_INET, address.c_str(), &peer.sin_addr);
  while (!ended) {
    const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    // Whether it connects does not matter: the next one may, and without any the server ends by
    // itself, later.
    (void)::connect(fd.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof(peer));
    ::poll(nullptr, 0, kWakeIntervalMs);
  }
}

}  // namespace

WebReply text_reply(int status, std::string text) {
  WebReply reply;
  reply.status = status;
  reply.body = std::make_shared<const std::string>(std::move(text) + '\n');
  return reply;
}

struct WebServer::State {
  explicit State(WebServerOptions given) : options(std::move(given)), access(options.access) {}
  ~State() {
    if (front != nullptr) front->stop();
    if (context != nullptr) mg_stop(context);  // joins the threads
  }

  WebReply reply_to(const mg_connection* connection, const mg_request_info& info);
  WebReply not_found(int status, std::string_view what) const;
  uint16_t listening_port() const;  // of civetweb

  static State& of(const mg_connection* connection) {
    return *static_cast<State*>(mg_get_user_data(mg_get_context(connection)));
  }
  static int on_request(mg_connection* connection);
  static int on_http_error(mg_connection* connection, int status, const char* message);
  static int on_log(const mg_connection* connection, const char* message);

  const WebServerOptions options;
  PageAccess access;
  mg_context* context = nullptr;
  std::unique_ptr<Ipv6Front> front;  // nullptr: the address is one of IPv4; outlives requests
  bool is_behind_front = false;      // set before requests come
  std::atomic<const Ipv6Front*> front_for_requests{nullptr};
  std::mutex start_mutex;
  std::string start_message;  // what civetweb said while it started
};

int WebServer::State::on_request(mg_connection* connection) {
  const mg_request_info& info = *mg_get_request_info(connection);
  WebReply reply;
  try {
    reply = of(connection).reply_to(connection, info);
  } catch (const std::exception& error) {  // memory: civetweb is no C++
    reply = text_reply(500, error.what());
  }
  send_reply(connection, reply, std::string_view(info.request_method) != "HEAD");
  return reply.status;  // not 0: civetweb has nothing to add
}

WebReply WebServer::State::reply_to(const mg_connection* connection, const mg_request_info& info) {
  const std::string_view method = info.request_method;
  if (method != "GET" && method != "HEAD") {
    WebReply refusal = text_reply(405, "This server is read-only: it takes GET and HEAD.");
    refusal.headers.emplace_back("Allow", "GET, HEAD");
    return refusal;
  }
  const char* raw = info.local_uri_raw == nullptr ? info.request_uri : info.local_uri_raw;
  const auto path = split_path(raw == nullptr ? "" : raw);
  if (!path) return not_found(400, "This is no path.");
  for (const WebRoute& route : options.routes) {
    auto names = match_path(route.path, *path);
    if (!names) continue;
    WebRequest request;
    request.peer_address = info.remote_addr;
    request.peer_port = static_cast<uint16_t>(info.remote_port);
    request.port = static_cast<uint16_t>(info.server_port);
    if (is_behind_front) {
      const Ipv6Front* const asked = front_for_requests.load(std::memory_order_acquire);
      const auto ends = asked == nullptr
                            ? std::nullopt
                            : asked->ends_of({request.peer_address, request.peer_port});
      if (!ends) return text_reply(403, "Ask at the port that the configuration names.");
      request.peer_address = ends->peer.address;
      request.peer_port = ends->peer.port;
      request.own_address = ends->own.address;
      request.port = ends->own.port;
    }
    request.host = header_of(connection, "Host");
    request.authorization = header_of(connection, "Authorization");
    request.query = info.query_string == nullptr ? "" : info.query_string;
    request.names = std::move(*names);
    if (auto refusal = access.refuse(route.access, request)) return std::move(*refusal);
    return route.answer(request);
  }
  return not_found(404, "There is no such path.");
}

WebReply WebServer::State::not_found(int status, std::string_view what) const {
  std::string text = fmt::format("{} These are there:", what);
  for (const WebRoute& route : options.routes) text += fmt::format("\n{}", route.path);
  return text_reply(status, std::move(text));
}

// What civetweb finds by itself: no HTTP, a request that is too long.
int WebServer::State::on_http_error(mg_connection* connection, int status, const char* message) {
  send_reply(connection, text_reply(status, message == nullptr ? "" : message), true);
  return 0;
}

int WebServer::State::on_log(const mg_connection* connection, const char* message) {
  const mg_context* context = connection == nullptr ? nullptr : mg_get_context(connection);
  if (context == nullptr || mg_get_user_data(context) == nullptr) return 1;
  State& state = *static_cast<State*>(mg_get_user_data(context));
  const std::lock_guard lock(state.start_mutex);
  if (state.start_message.empty()) state.start_message = message;
  return 1;  // it is not to be logged: strangers cause it
}

WebServer::WebServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

void WebServer::set_access(PageAccessOptions access) {
  state_->access.set_options(std::move(access));
}

WebServer::~WebServer() {
  std::atomic<bool> ended = false;
  const std::string address = state_->front != nullptr ? kBehindFront : state_->options.address;
  const uint16_t port = state_->listening_port();
  if (state_->front != nullptr) state_->front->stop();
  std::thread waker([&ended, &address, port] { wake_until(ended, address, port); });
  state_.reset();
  ended = true;
  waker.join();
}

Result<std::unique_ptr<WebServer>> WebServer::create(WebServerOptions options) {
  auto state = std::make_unique<State>(std::move(options));
  const auto address = SocketAddress::parse(state->options.address, state->options.port);
  const bool has_front = address && address->is_v6();
  state->is_behind_front = has_front;
  const std::string bind_address =
      has_front ? fmt::format("{}:0", kBehindFront)
                : fmt::format("{}:{}", state->options.address, state->options.port);
  const std::string threads = std::to_string(kThreads), timeout = std::to_string(kRequestTimeoutMs),
                    bytes = std::to_string(kRequestBytesMax);
  std::array<const char*, 11> settings = {"listening_ports",
                                          bind_address.c_str(),
                                          "num_threads",
                                          threads.c_str(),
                                          "request_timeout_ms",
                                          timeout.c_str(),
                                          "max_request_size",
                                          bytes.c_str(),
                                          "decode_url",
                                          "no",
                                          nullptr};
  mg_callbacks callbacks{};
  callbacks.begin_request = State::on_request;
  callbacks.http_error = State::on_http_error;
  callbacks.log_message = State::on_log;
  {
    const SignalsBlocked blocked;
    state->context = mg_start(&callbacks, state.get(), settings.data());
  }
  std::string why = state->context == nullptr ? state->start_message : "";
  if (state->context != nullptr && has_front) {
    auto front = Ipv6Front::create(*address, state->listening_port());
    if (front) {
      state->front = std::move(*front);
      state->front_for_requests.store(state->front.get(), std::memory_order_release);
    } else {
      why = front.status().message();
    }
  }
  if (!why.empty() || state->context == nullptr) {
    return make_status(StatusCode::Unavailable,
                       "metrics.port: cannot serve /metrics on {} ({}); use a free port and an "
                       "address of this host (metrics.address), or 0 for no metrics",
                       host_and_port(state->options.address, state->options.port), why);
  }
  return std::unique_ptr<WebServer>(new WebServer(std::move(state)));
}

uint16_t WebServer::State::listening_port() const {
  mg_server_port port{};
  return mg_get_server_ports(context, 1, &port) == 1 ? static_cast<uint16_t>(port.port) : 0;
}

uint16_t WebServer::port() const {
  return state_->front != nullptr ? state_->front->port() : state_->listening_port();
}

}  // namespace braid
