// SPDX-License-Identifier: Apache-2.0
#include "operation/message_log.h"

#include <fmt/format.h>

#include "proto/ring.h"

namespace braid {

void MessageLog::on_end(bool is_send, uint64_t bytes) {
  change_pending(is_send, -1);
  of(is_send).ended.add(1);
  of(is_send).bytes.add(bytes);
}

void MessageLog::record(const OperationKey& key, const MessageOnNode& message, uint64_t end_ns) {
  if (timeline_ == nullptr) return;
  TimelineEvent span = span_of(key, message.name, message.submitted_ns(), message.went_ns);
  span.bytes = message.bytes;
  span.end_ns = end_ns;
  timeline_->record(span);
}

TimelineEvent MessageLog::span_of(const OperationKey& key, const MessageName& name,
                                  uint64_t begin_ns, uint64_t went_ns) {
  auto& known = names_[key.tensor];
  if (known == nullptr) {
    const std::string from =
        name.from == proto::kAnyRank ? std::string("any rank") : fmt::format("rank {}", name.from);
    known = std::make_shared<const std::string>(
        fmt::format("messages from {} to rank {}", from, name.to));
  }
  TimelineEvent event;
  event.kind = SpanKind::Operation;
  event.job_key = key.job_key;
  event.tensor = key.tensor;
  event.step = key.step;
  event.number = 1;
  event.begin_ns = begin_ns;
  event.go_or_peer = went_ns;
  return event;
}

void MessageLog::change_pending(bool is_send, int64_t by) {
  SharedNumber& pending = of(is_send).pending;
  pending.set(pending.get() + static_cast<uint64_t>(by));
}

}  // namespace braid
