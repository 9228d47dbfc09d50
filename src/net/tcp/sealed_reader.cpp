// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/sealed_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "net/tcp/sealed_record.h"

namespace braid {
namespace {

// How many encrypted bytes a record has that begins with `bytes`.
size_t record_length(const uint8_t* bytes) {
  uint32_t length = 0;
  std::memcpy(&length, bytes, sizeof(length));
  return length;
}

}  // namespace

SealedReader::SealedReader(FlowChannelHandler& handler, size_t header_bytes, RecordCipher cipher)
    : message_(handler, header_bytes), cipher_(std::move(cipher)) {}

// How much of the record that has begun is still to come, if its length is here.
size_t SealedReader::missing() const {
  if (begun_bytes_ < SealedRecord::kLengthBytes) return 0;
  return record_length(begun_.data()) + SealedRecord::kExtraBytes - begun_bytes_;
}

SealedReader::Outcome SealedReader::read(int socket, ReadBuffer& buffer) {
  message_.look_again();
  const size_t rest = missing();
  const size_t kept = rest == 0 ? begun_bytes_ : 0;  // of a length that is not here as a whole
  if (kept != 0) std::memcpy(buffer.data(), begun_.data(), kept);
  const size_t room = buffer.size() - kept;
  std::array<iovec, 2> parts{iovec{begun_.data() + begun_bytes_, rest},
                             iovec{buffer.data() + kept, room}};
  const auto received =
      receive(socket, std::span(parts).subspan(rest == 0 ? 1 : 0), message_.handler());
  if (!received) return Outcome::Failed;
  if (*received == 0) return Outcome::Drained;
  if (*received < rest) {
    begun_bytes_ += *received;
    return Outcome::Drained;
  }
  begun_bytes_ = 0;
  if (rest != 0 && !take_record(std::span(begun_).first(record_length(begun_.data()) +
                                                        SealedRecord::kExtraBytes)))
    return Outcome::Failed;
  if (!take(std::span(buffer).first(kept + *received - rest))) return Outcome::Failed;
  return *received == rest + room ? Outcome::More : Outcome::Drained;
}

// All records that are here; what is left is kept. False: the channel is over.
bool SealedReader::take(std::span<uint8_t> bytes) {
  while (bytes.size() >= SealedRecord::kLengthBytes) {
    const size_t length = record_length(bytes.data());
    if (!check_length(length)) return false;
    if (bytes.size() < length + SealedRecord::kExtraBytes) break;
    if (!take_record(bytes.first(length + SealedRecord::kExtraBytes))) return false;
    bytes = bytes.subspan(length + SealedRecord::kExtraBytes);
  }
  if (bytes.empty()) return true;
  if (begun_.empty()) begun_.resize(SealedRecord::kSizeMax);
  std::copy(bytes.begin(), bytes.end(), begun_.begin());
  begun_bytes_ = bytes.size();
  return true;
}

bool SealedReader::check_length(size_t bytes) {
  const bool is_right = message_.state() == State::Header
                            ? bytes >= message_.header_bytes() && bytes <= SealedRecord::kBytesMax
                            : bytes == SealedRecord::next(message_.payload_left());
  return is_right || fail("an encrypted record has a length that none has");
}

bool SealedReader::take_record(std::span<uint8_t> record) {
  const auto clear = record.first<SealedRecord::kLengthBytes>();
  const auto tag = record.last<RecordCipher::kTagBytes>();
  const auto sealed = record.subspan(clear.size(), record.size() - SealedRecord::kExtraBytes);
  const State state = message_.state();
  const bool has_place = state == State::Store || state == State::Whole;
  const auto plain = has_place ? std::span(message_.place(), sealed.size()) : sealed;
  if (const Status opened = cipher_.open(clear, sealed, tag, plain); !opened) {
    message_.handler().on_channel_error(opened);
    return false;
  }
  if (state == State::Header) return take_first(plain);
  if (state == State::Fold) message_.fold(plain);
  message_.note_taken(plain.size());
  return true;
}

bool SealedReader::take_first(std::span<uint8_t> plain) {
  const auto header = message_.header();
  std::copy_n(plain.begin(), header.size(), header.begin());
  if (!message_.begin()) return false;
  const auto payload = plain.subspan(header.size());
  const bool is_alone = SealedRecord::is_alone(header.size(), message_.payload_bytes());
  if (payload.size() != (is_alone ? message_.payload_bytes() : 0))
    return fail("an encrypted record does not hold what its header says");
  if (is_alone)
    message_.take_whole(payload);
  else
    message_.begin_parts();
  return true;
}

bool SealedReader::fail(const char* why) {
  message_.handler().on_channel_error({StatusCode::Protocol, why});
  return false;
}

}  // namespace braid
