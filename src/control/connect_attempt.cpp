// SPDX-License-Identifier: Apache-2.0
#include "control/connect_attempt.h"

#include <algorithm>

#include "base/local_host.h"

namespace braid {
namespace {

constexpr size_t kAddressesMax = 8;  // of one host name
constexpr uint64_t kAddressTimeMinMs = 1;

// libuv's words for what went wrong, and what to do about it.
Status explain(const Status& reason, const SocketAddress& address) {
  switch (reason.cause()) {
    case UV_ECONNREFUSED:
      return {StatusCode::Unavailable,
              "connection refused: is braidd running there, does it listen on that address, and is "
              "control.port the same on all nodes?",
              reason.cause()};
    case UV_EOF:
    case UV_ECONNRESET:
      return {StatusCode::Unavailable,
              "it closed the connection during the handshake: is it a braidd, and does its log say "
              "why?",
              reason.cause()};
    case UV_ENETUNREACH:
    case UV_EADDRNOTAVAIL:
    case UV_EHOSTUNREACH:
    case UV_ETIMEDOUT:
      if (!has_own_address(address.is_v6())) {
        return {reason.code(),
                fmt::format("{}; this node has no {} address: set node.address of both nodes to "
                            "addresses of one family; this node has {}",
                            reason.message(), address.is_v6() ? "IPv6" : "IPv4", own_interfaces()),
                reason.cause()};
      }
      return {reason.code(),
              fmt::format("{}; if both nodes share another network, set node.address and "
                          "transport.rails of both to it: this node has {}",
                          reason.message(), own_interfaces()),
              reason.cause()};
    default:
      return reason;
  }
}

// An IPv6 address with which nothing can be done.
Status no_way_to(const std::string& host) {
  const std::string fault = address_fault(host);
  if (!fault.empty())
    return make_status(StatusCode::InvalidArgument, "the address '{}' {}", host, fault);
  return make_status(
      StatusCode::NotFound,
      "the address {} is link-local, and this node has no device '{}' that could lead to it: set "
      "node.address of that node to a global address, or name the device alike on all nodes",
      host, host.substr(host.find('%') + 1));
}

}  // namespace

ConnectAttempt::ConnectAttempt(Loop& loop, const Clock& clock, std::string host, uint16_t port,
                               HandshakeOptions options, uint32_t timeout_ms)
    : loop_(loop),
      clock_(clock),
      host_(std::move(host)),
      port_(port),
      options_(std::move(options)),
      timeout_ms_(timeout_ms),
      deadline_at_ms_(clock.now_ms() + timeout_ms),
      resolver_(loop),
      timer_(loop) {}

void ConnectAttempt::start(Hooks hooks, std::optional<uint32_t> user) {
  hooks_ = std::move(hooks);
  if (const auto numeric = SocketAddress::parse(host_, port_)) {
    addresses_ = {*numeric};
    timer_.start_once(0, [this] { try_next_address(); });
    return;
  }
  if (host_.find(':') != std::string::npos) {  // no name has one
    timer_.start_once(0, [this] { finish(no_way_to(host_)); });
    return;
  }
  const Status status = resolver_.resolve(
      host_, port_,
      [this](Result<std::vector<SocketAddress>> found) {
        timer_.stop();
        if (!found) {
          finish(found.status());
          return;
        }
        for (const auto& address : *found) {
          const bool is_new =
              std::find(addresses_.begin(), addresses_.end(), address) == addresses_.end();
          if (is_new && addresses_.size() < kAddressesMax) addresses_.push_back(address);
        }
        try_next_address();
      },
      user);
  if (!status) {
    timer_.start_once(0, [this, status] { finish(status); });
    return;
  }
  timer_.start_once(timeout_ms_, [this] {
    finish(make_status(
        StatusCode::DeadlineExceeded,
        "host name '{}' was not resolved within {} ms: check the name servers of this node", host_,
        timeout_ms_));
  });
}

uint64_t ConnectAttempt::remaining_ms() const {
  const uint64_t now_ms = clock_.now_ms();
  return now_ms >= deadline_at_ms_ ? 0 : deadline_at_ms_ - now_ms;
}

std::string ConnectAttempt::target() const { return host_and_port(host_, port_); }

void ConnectAttempt::try_next_address() {
  while (next_address_ < addresses_.size()) {
    const SocketAddress& address = addresses_[next_address_];
    // The time that is left is shared out, so that an address that does not answer leaves some to
    // the others.
    const uint64_t share_ms = remaining_ms() / (addresses_.size() - next_address_);
    ++next_address_;
    if (const auto known = hooks_.known_peer_at(address)) {
      finish(ConnectOutcome{nullptr, *known});
      return;
    }
    if (const Status allowed = hooks_.check(address); !allowed) {
      note_failure(address, allowed);
      continue;
    }
    connection_ = ControlConnection::connect(
        loop_, address, options_, static_cast<uint32_t>(std::max(share_ms, kAddressTimeMinMs)),
        *this);
    return;
  }
  fail();
}

void ConnectAttempt::on_established(ControlConnection&) {
  finish(ConnectOutcome{std::move(connection_), std::nullopt});
}

void ConnectAttempt::on_broken(ControlConnection& connection, const Status& reason) {
  const SocketAddress address = connection.remote();
  ControlConnection::discard(std::move(connection_));
  if (reason.cause() == UV_ECONNREFUSED) {
    if (const auto self = hooks_.self_at(address)) {
      finish(ConnectOutcome{nullptr, *self});
      return;
    }
  }
  note_failure(address, explain(reason, address));
  try_next_address();
}

void ConnectAttempt::note_failure(const SocketAddress& address, const Status& reason) {
  if (failures_++ > 0) return;
  const bool is_named = address.host() != host_;
  first_failure_ = is_named ? reason.with_context(address.host()) : reason;
}

void ConnectAttempt::fail() {
  const std::string own = addresses_.empty() ? "" : own_end_towards(addresses_.front().host());
  Status status = first_failure_.with_context(fmt::format(
      "cannot connect to the daemon at {}{}", target(), own.empty() ? "" : " from " + own));
  if (failures_ > 1) {
    status = Status(status.code(),
                    fmt::format("{} (and {} more addresses)", status.message(), failures_ - 1),
                    status.cause());
  }
  finish(std::move(status));
}

void ConnectAttempt::finish(Result<ConnectOutcome> outcome) {
  // The callee destroys this attempt.
  const auto done = std::move(hooks_.done);
  done(std::move(outcome));
}

}  // namespace braid
