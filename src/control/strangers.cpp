// SPDX-License-Identifier: Apache-2.0
#include "control/strangers.h"

#include <utility>

namespace braid {

Strangers::Strangers(Loop& loop, const Clock& clock, const ControlPlaneOptions& options,
                     uint64_t& refused, Established established)
    : loop_(loop),
      options_(options),
      refused_(refused),
      established_(std::move(established)),
      log_(clock) {}

void Strangers::take(Result<std::unique_ptr<TcpStream>> stream, HandshakeOptions handshake) {
  if (!stream) return refuse("a stranger", stream.status().message());
  // Who is slow makes room for who is new: an honest handshake is over in a few round trips.
  if (connections_.size() >= options_.strangers_max) {
    const auto& oldest = *connections_.front();
    refuse(oldest.remote().to_string(),
           fmt::format("it had not completed the handshake when more than {} others waited",
                       options_.strangers_max));
    ControlConnection::discard(take_out(connections_, oldest));
  }
  auto connection = ControlConnection::accept(loop_, std::move(*stream), std::move(handshake),
                                              options_.connect_timeout_ms, *this);
  if (connection == nullptr) return refuse("a stranger", "it was gone before it was accepted");
  connections_.push_back(std::move(connection));
}

void Strangers::refuse(const std::string& who, const std::string& reason) {
  ++refused_;
  log_.refused(who, reason);
}

void Strangers::on_established(ControlConnection& connection) {
  // A connection to this daemon itself is closed at its other end, by the attempt that sees whom it
  // has reached. Nothing else ends this end.
  if (connection.peer().id != options_.self.id) established_(take_out(connections_, connection));
}

void Strangers::on_message(ControlConnection&, const FrameNumbers&, const proto::ControlMessage&,
                           size_t) {
  // From this daemon itself.
}

void Strangers::on_broken(ControlConnection& connection, const Status& reason) {
  if (!connection.has_been_established()) refuse(connection.remote().to_string(), reason.message());
  ControlConnection::discard(take_out(connections_, connection));
}

}  // namespace braid
