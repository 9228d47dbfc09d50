// SPDX-License-Identifier: Apache-2.0
#include "base/journal.h"

#include <cstring>

#include <endian.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log_formatters.h"
#include "base/log_text.h"
#include "base/printable.h"
#include "base/stderr_sink.h"

namespace braid {
namespace {

// "NAME=value\n"; where the value has lines, its name, its length as 64 bits and itself.
void append_field(std::string& entry, std::string_view name, std::string_view value) {
  entry += name;
  if (value.find('\n') == std::string_view::npos) {
    entry += '=';
  } else {
    entry += '\n';
    const uint64_t bytes = htole64(value.size());
    entry.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  }
  entry += value;
  entry += '\n';
}

std::string entry_of(spdlog::level::level_enum level, std::string_view text,
                     const std::string& node, const LogFields& fields) {
  std::string entry;
  append_field(entry, "MESSAGE", cut_text(printable(text), kLogLineBytesMax));
  append_field(entry, "PRIORITY", std::to_string(syslog_priority(level)));
  append_field(entry, "SYSLOG_IDENTIFIER", "braidd");
  if (!node.empty()) append_field(entry, "BRAID_NODE", node);
  if (!fields.job.name.empty()) append_field(entry, "BRAID_JOB", fields.job.name);
  if (fields.user) append_field(entry, "BRAID_USER", std::to_string(*fields.user));
  if (fields.rank) append_field(entry, "BRAID_RANK", std::to_string(*fields.rank));
  if (!fields.peer.empty()) append_field(entry, "BRAID_PEER", fields.peer);
  if (!fields.rail.empty()) append_field(entry, "BRAID_RAIL", fields.rail);
  if (fields.flow) append_field(entry, "BRAID_FLOW", std::to_string(*fields.flow));
  return entry;
}

}  // namespace

bool goes_to_journal(int fd, const char* journal_stream) {
  struct stat file {};
  if (journal_stream == nullptr || ::fstat(fd, &file) != 0) return false;
  return fmt::format("{}:{}", file.st_dev, file.st_ino) == journal_stream;
}

JournalSink::JournalSink(std::string node, std::string path)
    : node_(std::move(node)),
      path_(std::move(path)),
      socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}

bool JournalSink::is_reachable() const {
  return socket_.is_valid() && ::access(path_.c_str(), W_OK) == 0;
}

void JournalSink::sink_it_(const spdlog::details::log_msg& message) {
  if (lost_ > 0 && send(entry_of(spdlog::level::warn, lost_lines_text(lost_), node_, {})))
    lost_ = 0;
  const std::string_view text(message.payload.data(), message.payload.size());
  // In order: behind lines that were lost nothing is sent before that is told.
  if (lost_ > 0 || !send(entry_of(message.level, text, node_, LineFields::current()))) ++lost_;
}

// To its address each time: a journal that was started again has another socket there.
bool JournalSink::send(std::string_view entry) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return ::sendto(socket_.get(), entry.data(), entry.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&address), sizeof(address)) >= 0;
}

}  // namespace braid
