// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/peer.h"
#include "base/status.h"

namespace braid {

class ClientConnection;
class Job;
namespace proto {
struct ClientMessage;
struct ControlMessage;
}  // namespace proto

// Who answers questions about this node's jobs. The JobManager passes questions on, and says what
// becomes of the jobs. Control loop only.
class JobTeller {
 public:
  virtual ~JobTeller() = default;
  // From a client. False: the message is no question.
  virtual bool on_client_message(ClientConnection& asker, const proto::ClientMessage& message) = 0;
  // From a node. False: the message is neither a question nor an answer to one.
  virtual bool on_control_message(const Peer& from, const proto::ControlMessage& message) = 0;
  virtual void on_job_began(const Job& job) = 0;
  // Before the job's operations are given up.
  virtual void on_job_failed(const Job& job, const Status& reason) = 0;
  virtual void on_job_over(uint64_t key) = 0;
};

}  // namespace braid
