// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "loop/loop.h"
#include "loop/timer.h"

namespace braid {

// What who has started a personal daemon wants to know of it: braidd.json in its folder, for its
// user alone, from when it takes trainers until it ends.
struct PersonalNews {
  pid_t process = 0;
  std::string node;
  std::string socket;
  std::string address;                   // where the daemons of other nodes reach it
  std::optional<uint16_t> control_port;  // nothing: there is no cluster key, it works alone
  std::optional<uint16_t> page_port;     // nothing: it has no page
};

std::string to_json(const PersonalNews& news);

// `error` of a daemon that could not open its socket in the folder: if there is another daemon
// (AlreadyExists), with its process, socket and page, as its news have them.
Status name_first_daemon(const Status& error, const std::string& folder);

// The life of a personal daemon, see config/personal.h: it tells its news, notices that nobody uses
// it any more, and takes its folder along. Control loop only.
class PersonalLife {
 public:
  static constexpr uint64_t kLookMs = 500;
  static constexpr uint64_t kIdleMs = 5'000;
  static constexpr uint64_t kFirstUseMs = 600'000;  // who starts it by hand may take some time

  struct Use {
    uint64_t present = 0;  // clients that are connected, and jobs
    uint64_t heard = 0;    // messages of clients so far, also of those who have gone
  };

  struct Options {
    std::string folder;
    std::string folder_above;   // goes as well if nothing else is in it; empty: it stays
    std::function<Use()> use;   // how it is used now
    std::function<void()> end;  // called once, when nobody uses it
  };

  // Tells the news.
  static Result<std::unique_ptr<PersonalLife>> create(Loop& loop, const Clock& clock,
                                                      Options options, const PersonalNews& news);
  PersonalLife(const PersonalLife&) = delete;
  PersonalLife& operator=(const PersonalLife&) = delete;
  // Removes what is braid's in the folder, and the folder if nothing else is in it.
  ~PersonalLife();

  void look();  // the timer does

 private:
  PersonalLife(Loop& loop, const Clock& clock, Options options, Fd lock);
  bool take_lock();

  const Clock& clock_;
  const Options options_;
  const Fd lock_;
  uint64_t heard_ = 0;
  uint64_t used_at_ms_;
  bool was_used_ = false;
  bool is_over_ = false;  // and the lock stays ours
  Timer timer_;
};

}  // namespace braid
