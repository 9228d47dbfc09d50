// SPDX-License-Identifier: Apache-2.0
#include "job/client_body.h"

#include "base/log.h"

namespace braid {

void refuse_client(ClientConnection& connection, const Status& reason) {
  const ClientCredentials& who = connection.credentials();
  BRAID_LOG_WARN(LogFields{.user = who.uid}, "client {} (process {}, user {}) refused: {}",
                 connection.id(), who.pid, who.uid, reason.message());
  send_failure(connection, reason);
  connection.close_after_send();
}

}  // namespace braid
