// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "ipc/client_connection.h"
#include "proto/client_generated.h"

namespace braid {

// Sends a trainer or a tool a message with this body, made by `builder`.
template <typename Table>
void send_body(ClientConnection& connection, flatbuffers::FlatBufferBuilder& builder,
               flatbuffers::Offset<Table> body, std::span<const int> fds = {}) {
  builder.Finish(proto::CreateClientMessage(builder, proto::ClientBodyTraits<Table>::enum_value,
                                            body.Union()));
  connection.send(builder, fds);
}

inline void send_failure(ClientConnection& connection, const Status& reason) {
  flatbuffers::FlatBufferBuilder builder;
  const auto text = builder.CreateString(reason.message());
  send_body(connection, builder,
            proto::CreateFailure(builder, static_cast<uint8_t>(reason.code()), text));
}

// The client hears why, the log as well; then the connection is closed.
void refuse_client(ClientConnection& connection, const Status& reason);

}  // namespace braid
