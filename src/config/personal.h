// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <sys/types.h>

#include "base/status.h"
#include "config/config.h"

namespace braid {

// A personal daemon is one that a user starts for himself, without configuration and without root:
// braidd --personal. All that it keeps is in one folder of the user's, which goes with it.

// Files of that folder. The socket and the news are the daemon's; the lock, the key and the log are
// made by the process that starts it: see python/braid/_personal.py.
inline constexpr const char* kPersonalSocket = "braidd.sock";
inline constexpr const char* kPersonalNews = "braidd.json";  // see daemon/personal_life.h
// Held (flock) shared by each process that means to use the daemon, for as long as it lives; held
// alone by one that starts the daemon, and by the daemon that ends.
inline constexpr const char* kPersonalLock = "braidd.lock";
inline constexpr const char* kPersonalKey = "cluster.key";
inline constexpr const char* kPersonalLog = "braidd.log";

// Where `user` keeps the folder: in `runtime_directory` ($XDG_RUNTIME_DIR; nullptr: not set) if
// that is a folder of his alone, else in /tmp.
std::string personal_folder(const char* runtime_directory, uid_t user);

// Makes the folder, but not those above it, and checks that it is this process's user's alone:
// somebody else may have made it before, or a link to one. Errors name it and what would be right.
Status make_personal_folder(const std::string& folder);

// What --config and --set change: the socket in the folder, without a group; all ports as the
// kernel chooses them.
DaemonConfig personal_defaults(const std::string& folder);

}  // namespace braid
