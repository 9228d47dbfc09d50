// SPDX-License-Identifier: Apache-2.0
#include "loop/resolver.h"

namespace braid {
namespace {

Status resolve_error(const std::string& host, int error) {
  // A name that is unknown now may be known later only if the server said that it could not tell.
  const bool may_pass = error == UV_EAI_AGAIN || error == UV_EAI_MEMORY || error == UV_ENOMEM;
  return {may_pass ? StatusCode::Unavailable : StatusCode::NotFound,
          fmt::format("host name '{}' cannot be resolved: {}", host, uv_strerror(error)), error};
}

}  // namespace

Resolver::~Resolver() {
  if (request_ == nullptr) return;
  request_->owner = nullptr;
  request_->callback = nullptr;
  uv_cancel(reinterpret_cast<uv_req_t*>(&request_->uv));
}

Status Resolver::resolve(const std::string& host, uint16_t port, Callback callback) {
  BRAID_ASSERT_IN_LOOP(loop_);
  BRAID_ASSERT(request_ == nullptr, "one look-up at a time");
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  auto* request = new Request{{}, this, host, std::move(callback)};
  request->uv.data = request;
  const std::string service = std::to_string(port);
  const int error =
      uv_getaddrinfo(loop_.uv(), &request->uv, on_resolved, host.c_str(), service.c_str(), &hints);
  if (error != 0) {
    delete request;
    return resolve_error(host, error);
  }
  request_ = request;
  return Status::ok();
}

void Resolver::on_resolved(uv_getaddrinfo_t* uv, int error, addrinfo* found) {
  auto* request = static_cast<Request*>(uv->data);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    if (const auto address = SocketAddress::from(entry->ai_addr)) addresses.push_back(*address);
  }
  uv_freeaddrinfo(found);
  Resolver* owner = request->owner;
  const std::string host = std::move(request->host);
  const Callback callback = std::move(request->callback);
  delete request;
  if (owner == nullptr) return;
  owner->request_ = nullptr;
  if (error != 0 || addresses.empty()) {
    callback(resolve_error(host, error != 0 ? error : UV_EAI_NONAME));
  } else {
    callback(std::move(addresses));
  }
}

}  // namespace braid
