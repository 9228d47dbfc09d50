// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/status.h"
#include "proto/ring.h"

namespace braid {

// The two rings of proto/ring.h, seen from one side. Both sides keep their own index to themselves
// and only publish it; the other's is read from the shared memory and checked, for the process
// there may be broken or hostile.
//
// Sleep and wake. A consumer that found the ring empty sets consumer_sleeps and looks again; a
// producer moves tail and looks at consumer_sleeps. These four accesses are seq_cst, so at least
// one side sees the other's.

enum class RingState { Ready, Empty, Full, Corrupt };

// The writing end of one ring. One thread at a time.
template <typename Entry>
class RingProducer {
 public:
  RingProducer() = default;
  RingProducer(proto::RingIndices* indices, Entry* entries, uint32_t capacity)
      : indices_(indices), entries_(entries), capacity_(capacity), tail_(indices->tail.load()) {}

  // Ready: there is room for an entry.
  RingState state() const {
    const uint32_t in_use = tail_ - indices_->head.load(std::memory_order_acquire);
    if (in_use > capacity_) return RingState::Corrupt;
    return in_use < capacity_ ? RingState::Ready : RingState::Full;
  }

  // Only after state() said that there is room.
  void push(const Entry& entry) {
    std::memcpy(&entries_[tail_ & (capacity_ - 1)], &entry, sizeof(Entry));
    indices_->tail.store(++tail_, std::memory_order_seq_cst);
  }

  // True: the consumer sleeps, and it is now on the caller to send the wake-up.
  bool take_wake_duty() {
    return indices_->consumer_sleeps.load(std::memory_order_seq_cst) != 0 &&
           indices_->consumer_sleeps.exchange(0, std::memory_order_acq_rel) != 0;
  }

  void let_consumer_poll(bool may_poll) {
    indices_->consumer_may_poll.store(may_poll ? 1 : 0, std::memory_order_relaxed);
  }

  uint32_t capacity() const { return capacity_; }

 private:
  proto::RingIndices* indices_ = nullptr;
  Entry* entries_ = nullptr;
  uint32_t capacity_ = 0;
  uint32_t tail_ = 0;
};

// The reading end of one ring. One thread at a time.
template <typename Entry>
class RingConsumer {
 public:
  RingConsumer() = default;
  RingConsumer(proto::RingIndices* indices, const Entry* entries, uint32_t capacity)
      : indices_(indices), entries_(entries), capacity_(capacity), head_(indices->head.load()) {}

  // Ready: `entry` is a copy that the producer cannot change any more, and its place is free again.
  RingState pop(Entry& entry) {
    const uint32_t waiting = indices_->tail.load(std::memory_order_acquire) - head_;
    if (waiting == 0) return RingState::Empty;
    if (waiting > capacity_) return RingState::Corrupt;
    std::memcpy(&entry, &entries_[head_ & (capacity_ - 1)], sizeof(Entry));
    indices_->head.store(++head_, std::memory_order_release);
    return RingState::Ready;
  }

  // Something was published since the last pop(), or the index is wrong.
  bool has_any() const { return indices_->tail.load(std::memory_order_acquire) != head_; }

  // Entries that were published since the last pop(); what a broken producer says, if it is broken.
  uint32_t waiting() const { return indices_->tail.load(std::memory_order_acquire) - head_; }

  // True: the ring is empty, and the producer will send a wake-up after its next entry. False:
  // pop again.
  bool prepare_sleep() {
    indices_->consumer_sleeps.store(1, std::memory_order_seq_cst);
    if (indices_->tail.load(std::memory_order_seq_cst) == head_) return true;
    cancel_sleep();
    return false;
  }
  void cancel_sleep() { indices_->consumer_sleeps.store(0, std::memory_order_relaxed); }
  bool may_poll() const { return indices_->consumer_may_poll.load(std::memory_order_relaxed) != 0; }

  uint32_t capacity() const { return capacity_; }

 private:
  proto::RingIndices* indices_ = nullptr;
  const Entry* entries_ = nullptr;
  uint32_t capacity_ = 0;
  uint32_t head_ = 0;
};

// Where the parts of the rings' memory lie. Points into it.
struct RingsView {
  proto::RingsHeader* header = nullptr;
  proto::SubmitEntry* submit = nullptr;
  proto::DoneEntry* done = nullptr;
  uint32_t submit_capacity = 0;
  uint32_t done_capacity = 0;
};

// A power of two, 2 … kRingCapacityMax.
bool is_ring_capacity(uint32_t capacity);

// For the client, which makes the memory: writes the header. `memory` is zeroed and has
// rings_bytes(…) bytes.
RingsView create_rings(uint8_t* memory, uint32_t submit_capacity, uint32_t done_capacity);

// For the daemon: checks the header against the capacities that OpenJob named, and that every byte
// between its fields is 0.
Result<RingsView> check_rings(uint8_t* memory, uint64_t bytes, uint32_t submit_capacity,
                              uint32_t done_capacity);

// The enums of an entry are in range and what is reserved is 0; everything else is for the job
// layer to judge.
Status check_submit_entry(const proto::SubmitEntry& entry);
// For the client: what is reserved is 0; everything else is for the job to judge.
Status check_done_entry(const proto::DoneEntry& entry);

// An error unless `fd` is an eventfd. Never blocks.
Status check_eventfd(int fd, const std::string& what);
// For the trainer's side, which makes it with EFD_NONBLOCK: its count and that flag belong to every
// process that shares it, so the daemon neither reads nor writes one that it was given.
void signal_eventfd(int fd);
void drain_eventfd(int fd);

// The done ring's wake-up: a byte over a Unix stream socket. Never blocks, whatever the other side
// does to its end.
void send_wake(int socket);
void drain_wakes(int socket);

}  // namespace braid
