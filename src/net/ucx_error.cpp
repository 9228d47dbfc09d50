// SPDX-License-Identifier: Apache-2.0
#include "net/ucx_error.h"

namespace braid {
namespace {

StatusCode code_of(ucs_status_t error) {
  switch (error) {
    case UCS_ERR_NO_DEVICE:
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_REJECTED:
    case UCS_ERR_IO_ERROR:
      return StatusCode::Unavailable;
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_TIMED_OUT:
      return StatusCode::DeadlineExceeded;
    case UCS_ERR_NO_MEMORY:
    case UCS_ERR_NO_RESOURCE:
      return StatusCode::ResourceExhausted;
    case UCS_ERR_INVALID_PARAM:
    case UCS_ERR_INVALID_ADDR:
      return StatusCode::InvalidArgument;
    case UCS_ERR_CANCELED:
      return StatusCode::Cancelled;
    default:
      return StatusCode::Internal;
  }
}

}  // namespace

Status status_from_ucx(ucs_status_t error, std::string_view what) {
  return {code_of(error), fmt::format("{}: {}", what, ucs_status_string(error)), error};
}

}  // namespace braid
