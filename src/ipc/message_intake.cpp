// SPDX-License-Identifier: Apache-2.0
#include "ipc/message_intake.h"

#include <utility>

#include "ipc/rings.h"
#include "ipc/shared_memory.h"

namespace braid {
namespace {

constexpr size_t kCheckedOnLoopMax = 64 << 10;  // bytes of a message; larger ones go elsewhere

bool is_client_message(const std::vector<uint8_t>& bytes) {
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  return proto::VerifyClientMessageBuffer(verifier);
}

// How many descriptors belong to a message.
size_t fds_of(proto::ClientBody body) {
  switch (body) {
    case proto::ClientBody::OpenJob:
      return 3;  // input arena, rings, the submit ring's wake-up
    case proto::ClientBody::RegisterMemory:
      return 1;  // input arena
    default:
      return 0;
  }
}

}  // namespace

MessageIntake::MessageIntake(uid_t user, std::shared_ptr<UserQuotas> quotas,
                             DescriptorCloser& closer, UserWork* checking)
    : user_(user),
      closer_(closer),
      checking_(checking),
      charge_(std::move(quotas), user, UserResource::BufferBytes) {}

FrameReader::Outcome MessageIntake::read(int socket, uint32_t bytes_max, uint32_t fds_max) {
  const FrameReader::Outcome outcome = reader_.read(socket, bytes_max, fds_max);
  if (outcome == FrameReader::Outcome::Error) {
    error_ = reader_.error();
    give_back(reader_.take_fds());
    return outcome;
  }
  if (outcome == FrameReader::Outcome::WouldBlock) {
    const Status room = charge_.set(reader_.memory_bytes());
    return room ? outcome : refuse(room);
  }
  if (outcome != FrameReader::Outcome::Frame) return outcome;
  Frame frame = reader_.take();
  fds_ = std::move(frame.fds);
  if (const Status room = charge_.set(frame.bytes.size()); !room) return refuse(room);
  bytes_ = std::make_shared<std::vector<uint8_t>>(std::move(frame.bytes));
  is_large_ = checking_ != nullptr && bytes_->size() > kCheckedOnLoopMax;
  is_message_ = !is_large_ && is_client_message(*bytes_);
  return outcome;
}

FrameReader::Outcome MessageIntake::refuse(const Status& room) {
  error_ = room.with_context("a message that is long");
  give_back(reader_.take_fds());
  give_back(take_fds());
  return FrameReader::Outcome::Error;
}

void MessageIntake::check(std::function<void()> checked) {
  const auto is_message = std::make_shared<bool>(false);
  checking_->run(
      user_, this, [bytes = bytes_, is_message] { *is_message = is_client_message(*bytes); },
      [this, is_message, checked = std::move(checked)] {
        is_message_ = *is_message;
        checked();
      });
}

const proto::ClientMessage* MessageIntake::message() const {
  return is_message_ ? proto::GetClientMessage(bytes_->data()) : nullptr;
}

// To free a large one takes long.
void MessageIntake::let_go(bool is_counted) {
  if (!is_counted) uncount();
  if (is_large_ && bytes_ != nullptr) checking_->dispose(std::move(bytes_));
  bytes_.reset();
}

void MessageIntake::give_back(std::vector<Fd> fds) {
  for (Fd& fd : fds) closer_.close(user_, std::move(fd));
}

void MessageIntake::drop(bool is_counted) {
  give_back(reader_.take_fds());
  give_back(take_fds());
  if (checking_ != nullptr) checking_->drop(user_, this);
  let_go(is_counted);
}

Status check_descriptors(const proto::ClientMessage& message, const std::vector<Fd>& fds) {
  const size_t expected = fds_of(message.body_type());
  if (fds.size() != expected) {
    return make_status(StatusCode::Protocol, "{} came with {} descriptors instead of {}",
                       proto::EnumNameClientBody(message.body_type()), fds.size(), expected);
  }
  if (fds.empty()) return Status::ok();
  BRAID_RETURN_IF_ERROR(check_memfd(fds[0].get(), "input arena"));
  if (message.body_type() == proto::ClientBody::RegisterMemory) return Status::ok();
  BRAID_RETURN_IF_ERROR(check_memfd(fds[1].get(), "rings' memory"));
  return check_eventfd(fds[2].get(), "wake-up of the submit ring");
}

}  // namespace braid
