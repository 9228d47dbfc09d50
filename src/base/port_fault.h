// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/socket_address.h"

namespace braid {

// Why a daemon cannot listen at an address: "control.port: 7410 is taken at 10.0.0.1; stop what
// listens there (…), or use another port". `error` is the errno of bind() or listen(); `other` is
// what to use instead.
std::string port_fault(std::string_view key, const SocketAddress& address, int error,
                       std::string_view other);

}  // namespace braid
