// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"
#include "base/status.h"
#include "ipc/descriptor_closer.h"
#include "ipc/frame_reader.h"
#include "ipc/user_quotas.h"
#include "loop/user_work.h"
#include "proto/client_generated.h"

namespace braid {

// One client's messages on their way in, one at a time: put together from the socket, checked by
// FlatBuffers, kept while they are handled. Their memory counts as the user's. Control loop only;
// lives in its ClientConnection.
class MessageIntake {
 public:
  // All that is passed by reference outlives this. `checking`: checks large messages on another
  // thread; nullptr: the loop does.
  MessageIntake(uid_t user, std::shared_ptr<UserQuotas> quotas, DescriptorCloser& closer,
                UserWork* checking);
  ~MessageIntake() { drop(false); }

  // As FrameReader::read(); error() may also say that the user has too much of such memory. After
  // Frame the message is here, until let_go().
  FrameReader::Outcome read(int socket, uint32_t bytes_max, uint32_t fds_max);
  const Status& error() const { return error_; }
  bool is_within_frame() const { return reader_.is_within_frame(); }

  // Whether the message has to be checked by check() first: `checked` comes later, from the loop.
  bool needs_check() const { return is_large_; }
  void check(std::function<void()> checked);
  // nullptr: the bytes are no message.
  const proto::ClientMessage* message() const;
  // Its bytes, for who needs them longer.
  std::shared_ptr<const std::vector<uint8_t>> bytes() const { return bytes_; }
  std::vector<Fd> take_fds() { return std::exchange(fds_, {}); }
  // The message was handled. `is_counted`: its memory counts until uncount(), for somebody still
  // needs it.
  void let_go(bool is_counted);
  void uncount() { (void)charge_.set(0); }
  // Closes descriptors off the loop.
  void give_back(std::vector<Fd> fds);
  // Nothing of a message is left, and no check is told of any more.
  void drop(bool is_counted);

 private:
  FrameReader::Outcome refuse(const Status& room);

  const uid_t user_;
  DescriptorCloser& closer_;
  UserWork* const checking_;
  FrameReader reader_;
  Status error_;
  UserCharge charge_;  // of what the reader holds, or the message until it was handled
  std::shared_ptr<std::vector<uint8_t>> bytes_;  // of the message
  std::vector<Fd> fds_;
  bool is_large_ = false;
  bool is_message_ = false;
};

// Whether those descriptors came that belong to the message, of kinds that nothing can make block:
// all others may take for ever to close, or to be looked at.
Status check_descriptors(const proto::ClientMessage& message, const std::vector<Fd>& fds);

}  // namespace braid
