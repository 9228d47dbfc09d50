// SPDX-License-Identifier: Apache-2.0
#include "coordinator/member_messages.h"

#include "base/log.h"

namespace braid {

Status send_to(ControlPlane& control_plane, const Peer& to, ControlBuffer& message) {
  Status sent = control_plane.send(to.id, message);
  if (sent || sent.code() == StatusCode::InvalidArgument) return sent;
  BRAID_LOG_WARN(LogFields{.peer = to.name}, "cannot tell node '{}': {}", to.name, sent.message());
  return Status::ok();
}

Status send_to_all(ControlPlane& control_plane, std::span<const MemberNode> nodes,
                   ControlBuffer message) {
  // The control plane keeps the bytes of what goes to this node itself, so that comes last.
  const Peer& self = control_plane.self();
  bool has_self = false;
  for (const MemberNode& node : nodes) {
    if (node.peer.id == self.id)
      has_self = true;
    else
      BRAID_RETURN_IF_ERROR(send_to(control_plane, node.peer, message));
  }
  return has_self ? send_to(control_plane, self, message) : Status::ok();
}

void tell(ControlPlane& control_plane, const Peer& to, ControlBuffer message) {
  (void)send_to(control_plane, to, message);
}

}  // namespace braid
