// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include <spdlog/sinks/base_sink.h>

#include "base/fd.h"
#include "base/line_fields.h"

namespace braid {

inline constexpr const char* kJournalSocket = "/run/systemd/journal/socket";

// Whether `fd` is the stream to the journal that systemd has made: $JOURNAL_STREAM has its device
// and inode, as systemd.exec(5) says. That it is set says little, for children inherit it whatever
// their stderr is.
bool goes_to_journal(int fd, const char* journal_stream);

// Writes lines to the journal with fields of their own: MESSAGE, PRIORITY, SYSLOG_IDENTIFIER,
// BRAID_NODE and those of LogFields, as BRAID_JOB, BRAID_USER, BRAID_RANK, BRAID_PEER, BRAID_RAIL,
// BRAID_FLOW.
//
// It speaks the journal's own protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL), and not through
// libsystemd: sd_journal_sendv() sends on a blocking socket, so a journal that hangs, with its
// queue full, would stop every loop that has something to say. This one sends with MSG_DONTWAIT:
// what there is no room for is counted, and the next line that is taken says how many were lost.
class JournalSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit JournalSink(std::string node, std::string path = kJournalSocket);

  // Whether somebody takes what is sent there.
  bool is_reachable() const;

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
  bool send(std::string_view entry) const;

  const std::string node_;
  const std::string path_;
  const Fd socket_;
  uint64_t lost_ = 0;
};

}  // namespace braid
