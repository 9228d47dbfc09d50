// SPDX-License-Identifier: Apache-2.0
#include "ipc/ipc_error.h"

#include <cstring>

namespace braid {

IpcError IpcError::from_errno(int error, const std::string& what) {
  char buffer[128];
  return {error, what + ": " + ::strerror_r(error, buffer, sizeof(buffer))};
}

}  // namespace braid
