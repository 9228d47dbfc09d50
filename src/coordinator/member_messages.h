// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/status.h"
#include "control/control_plane.h"
#include "messages/control_messages.h"

namespace braid {

// What a coordinator tells the nodes of its jobs. A node that cannot be reached is told of in the
// log: the control plane reports it as lost, and its jobs end with it. Control loop only.

// InvalidArgument: too long for a frame, so nobody has got it.
Status send_to(ControlPlane& control_plane, const Peer& to, ControlBuffer& message);
Status send_to_all(ControlPlane& control_plane, std::span<const MemberNode> nodes,
                   ControlBuffer message);
// For messages that are never too long.
void tell(ControlPlane& control_plane, const Peer& to, ControlBuffer message);

}  // namespace braid
