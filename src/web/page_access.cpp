// SPDX-License-Identifier: Apache-2.0
#include "web/page_access.h"

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <poll.h>

#include "web/web_path.h"

namespace braid {
namespace {

constexpr std::string_view kBearer = "Bearer ";
constexpr const char* kEverywhere = "0.0.0.0";
constexpr const char* kPageIsOff =
    "braidd: metrics are at /metrics, health at /healthz and /readyz; the page is off "
    "(page.access: off).";

bool is_loopback_address(std::string_view address) {
  return address.starts_with("127.") || address == "::1";
}

// In a time that depends on the sizes alone.
bool is_token(std::string_view given, std::span<const uint8_t> token) {
  return given.size() == token.size() &&
         CRYPTO_memcmp(given.data(), token.data(), token.size()) == 0;
}

// The kernel is asked, not the request: its Host header is what the asker likes.
std::optional<std::string> own_address_for(const PageAccessOptions& options, const TcpEnd& peer,
                                           const WebRequest& request) {
  if (!request.own_address.empty()) return request.own_address;
  if (options.listen_address != kEverywhere) return options.listen_address;
  return own_address_of(peer, request.port);
}

bool is_own_name(const PageAccessOptions& options, const std::string& host) {
  // Numbers are nobody's to give away.
  return host == "localhost" || host == host_name(options.node_name) || is_numeric_address(host);
}

std::optional<WebReply> refuse_stranger(const PageAccessOptions& options, WebRequest& request) {
  const TcpEnd peer{request.peer_address, request.peer_port};
  const auto own_address = own_address_for(options, peer, request);
  if (!is_loopback_address(peer.address) && own_address != peer.address) {
    return text_reply(
        403, fmt::format("This page is shown to users of node '{0}' alone. Open it there, or "
                         "through ssh -L {1}:127.0.0.1:{1} {0}. The operator can show it to "
                         "others: page.access: /path/of/a/token.",
                         options.node_name, request.port));
  }
  // A site on the internet may give its name this address, and its scripts would then read what the
  // browser gets here.
  if (!is_own_name(options, host_name(request.host))) {
    return text_reply(403, fmt::format("This page does not go by the name that was asked for. Use "
                                       "http://localhost:{}/.",
                                       request.port));
  }
  const auto user =
      own_address ? user_of_connection(peer, {*own_address, request.port}) : std::nullopt;
  if (!user) {
    return text_reply(403,
                      "The kernel does not say whose connection this is, so it cannot be said "
                      "which jobs may be shown.");
  }
  request.user = *user;
  return std::nullopt;
}

}  // namespace

PageAccess::PageAccess(PageAccessOptions options) { set_options(std::move(options)); }

void PageAccess::set_options(PageAccessOptions options) {
  auto shared = std::make_shared<const PageAccessOptions>(std::move(options));
  const std::lock_guard lock(mutex_);
  options_ = std::move(shared);
}

std::shared_ptr<const PageAccessOptions> PageAccess::options() const {
  const std::lock_guard lock(mutex_);
  return options_;
}

std::optional<WebReply> PageAccess::refuse(WebAccess access, WebRequest& request) {
  if (access == WebAccess::Open) return std::nullopt;
  const auto rules = options();
  switch (rules->mode) {
    case PageMode::Off:
      return text_reply(404, kPageIsOff);
    case PageMode::Loopback:
      return refuse_stranger(*rules, request);
    case PageMode::Token:
      break;
  }
  return access == WebAccess::Page ? std::nullopt : refuse_token(*rules, request);
}

std::optional<WebReply> PageAccess::refuse_token(const PageAccessOptions& options,
                                                 const WebRequest& request) {
  const std::string_view given = request.authorization;
  if (given.starts_with(kBearer) && is_token(given.substr(kBearer.size()), options.token))
    return std::nullopt;
  WebReply refusal = text_reply(
      401, given.empty()
               ? "This needs the token that page.access names: Authorization: Bearer TOKEN."
               : "This token is not the one that page.access names.");
  refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (given.empty()) return refusal;
  // Who guesses waits; so many wait that the others still have threads.
  if (delayed_.fetch_add(1) < kDelayedMax) {
    ::poll(nullptr, 0, kWrongTokenDelayMs);
  } else {
    refusal = text_reply(429, "Too many wrong tokens come at once. Try again in a second.");
    refusal.headers.emplace_back("Retry-After", "1");
  }
  delayed_.fetch_sub(1);
  return refusal;
}

}  // namespace braid
