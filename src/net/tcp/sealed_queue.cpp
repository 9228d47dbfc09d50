// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/sealed_queue.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>

#include "net/tcp/sealed_record.h"

namespace braid {
namespace {

// What is encrypted is still in a core's L2 cache when the kernel copies it: with 256 KiB a byte
// costs 15 % more.
constexpr size_t kBufferBytesMax = 96 << 10;
constexpr size_t kBufferBytesMin = 4 << 10;  // enough for acknowledgements

}  // namespace

SealedQueue::SealedQueue(RecordCipher cipher, std::span<const uint8_t> greeting)
    : cipher_(std::move(cipher)), buffer_(kBufferBytesMin) {
  std::copy(greeting.begin(), greeting.end(), buffer_.begin());
  end_ = greeting.size();
}

SealedQueue::Outcome SealedQueue::flush(int socket, Owner& owner) {
  while (!empty()) {
    if (Status sealed = seal_some(owner); !sealed) return fail(std::move(sealed));
    const ssize_t sent =
        ::send(socket, buffer_.data() + begin_, end_ - begin_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return after_failed_send();
    }
    begin_ += static_cast<size_t>(sent);
    if (begin_ == end_) begin_ = end_ = 0;
  }
  return Outcome::Empty;
}

Status SealedQueue::seal_some(Owner& owner) {
  while (!waiting().empty()) {
    const Message message = waiting().front();
    const size_t header = message.header.size();
    const size_t all = header + message.payload.size();
    const bool is_alone = SealedRecord::is_alone(header, message.payload.size());
    const size_t bytes = is_alone ? all : sealed_ == 0 ? header : SealedRecord::next(all - sealed_);
    if (!has_room(bytes + SealedRecord::kExtraBytes)) return Status::ok();
    BRAID_RETURN_IF_ERROR(seal_next(message, bytes));
    sealed_ += bytes;
    if (sealed_ < all) continue;
    sealed_ = 0;
    end_message(owner);
  }
  return Status::ok();
}

bool SealedQueue::has_room(size_t bytes) {
  const size_t needed = end_ + bytes;
  if (needed <= buffer_.size()) return true;
  if (needed > kBufferBytesMax) return false;
  buffer_.resize(std::min(kBufferBytesMax, std::max(needed, 2 * buffer_.size())));
  return true;
}

// The message's next `bytes`, of which none or all of the header are encrypted.
Status SealedQueue::seal_next(const Message& message, size_t bytes) {
  const auto header = sealed_ == 0 ? message.header : std::span<const uint8_t>();
  const size_t offset = sealed_ == 0 ? 0 : sealed_ - message.header.size();
  const std::array<std::span<const uint8_t>, 2> parts{
      header, message.payload.subspan(offset, bytes - header.size())};
  const auto record = std::span(buffer_).subspan(end_, bytes + SealedRecord::kExtraBytes);
  const auto length = record.first<SealedRecord::kLengthBytes>();
  const auto number = static_cast<uint32_t>(bytes);
  std::memcpy(length.data(), &number, sizeof(number));
  BRAID_RETURN_IF_ERROR(cipher_.seal(length, parts, record.subspan(length.size(), bytes),
                                     record.last<RecordCipher::kTagBytes>()));
  end_ += record.size();
  return Status::ok();
}

}  // namespace braid
