// SPDX-License-Identifier: Apache-2.0
#include "telling/check_answers.h"

#include <unistd.h>

#include "job/client_body.h"

namespace braid {
namespace {

constexpr size_t kHostBytesMax = 255;

Status check_asker(uid_t user) {
  if (user == 0 || user == ::geteuid()) return Status::ok();
  return make_status(StatusCode::PermissionDenied,
                     "a check makes this daemon and the other one send, so only root and the user "
                     "that braidd runs as may ask for it, not user {}: run it with sudo",
                     user);
}

}  // namespace

void CheckAnswers::on_query(ClientConnection& asker, const proto::PathCheck& query) {
  const uid_t user = asker.credentials().uid;
  if (const Status allowed = check_asker(user); !allowed) return refuse_client(asker, allowed);
  if (query.host()->size() == 0 || query.host()->size() > kHostBytesMax) {
    return refuse_client(
        asker, make_status(StatusCode::InvalidArgument, "a host's name has 1 to {} bytes, not {}",
                           kHostBytesMax, query.host()->size()));
  }
  const auto tell = [this, client = asker.id()](const PathFacts& facts) {
    ClientConnection* connection = find_(client);
    if (connection == nullptr) return;
    flatbuffers::FlatBufferBuilder builder;
    const auto json = builder.CreateString(to_json(facts));
    send_body(*connection, builder, proto::CreateStatusReply(builder, json));
  };
  const Status begun = checks_.check(
      {user, query.host()->str(), query.port(), query.milliseconds()}, lifetime_.guard(tell));
  if (!begun) refuse_client(asker, begun);
}

}  // namespace braid
