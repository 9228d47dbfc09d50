// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "messages/control_messages.h"
#include "proto/control_generated.h"

namespace braid {

// Makes `body` the one body of a control message.
template <typename Table>
ControlBuffer finish_control_message(ControlBuffer builder, flatbuffers::Offset<Table> body) {
  builder.Finish(proto::CreateControlMessage(builder, proto::ControlBodyTraits<Table>::enum_value,
                                             body.Union()));
  return builder;
}

}  // namespace braid
