// SPDX-License-Identifier: Apache-2.0
#include "ipc/unix_listener.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/user_group.h"

namespace braid {
namespace {

constexpr int kBacklog = 512;
constexpr int kLockAttempts = 100;
constexpr useconds_t kLockPauseUs = 10'000;

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return make_status(StatusCode::InvalidArgument,
                       "client.socket '{}' has {} bytes; a socket's path has 1 to {}", path,
                       path.size(), sizeof(address.sun_path) - 1);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<Fd> open_directory(const std::string& directory, const std::string& path) {
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
    return Status::from_errno(
        errno, fmt::format("cannot make the directory '{}' for the socket '{}' (make it, or set "
                           "client.socket to a path in a directory that exists)",
                           directory, path));
  }
  Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_valid()) {
    return Status::from_errno(
        errno, fmt::format("cannot open the directory '{}' of the socket", directory));
  }
  return fd;
}

// Two daemons that start at the same time must not both find the old socket dead. Lasts as long as
// `directory`.
Status lock_directory(const Fd& directory, const std::string& path) {
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    if (::flock(directory.get(), LOCK_EX | LOCK_NB) == 0) return Status::ok();
    if (errno != EWOULDBLOCK && errno != EINTR) {
      // Some network file systems have no flock; then the check for a living daemon alone must do.
      return Status::ok();
    }
    ::usleep(kLockPauseUs);
  }
  return make_status(
      StatusCode::Unavailable,
      "another process holds a lock on the directory of the socket '{}' (is a second "
      "braidd starting?)",
      path);
}

// Ok: `path` is free, or its owner is dead.
Status check_not_in_use(const std::string& path, const sockaddr_un& address) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return Status::ok();
    return Status::from_errno(errno, fmt::format("the socket '{}'", path));
  }
  if (!S_ISSOCK(info.st_mode)) {
    return make_status(StatusCode::AlreadyExists,
                       "'{}' exists and is not a socket; remove it or set client.socket", path);
  }
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.is_valid()) return Status::from_errno(errno, "cannot make a socket");
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno == ECONNREFUSED) return Status::ok();
    if (errno != EAGAIN) {  // EAGAIN: somebody listens, with a full backlog
      return Status::from_errno(errno, fmt::format("cannot tell who owns the socket '{}'", path));
    }
  }
  return make_status(StatusCode::AlreadyExists,
                     "another braidd is listening on '{}'; stop it or set client.socket", path);
}

// `file`: the socket as it is called now; `path`: as it will be.
Status give_to_group(const std::string& file, const std::string& path, const std::string& group) {
  if (group.empty()) return Status::ok();
  const auto number = find_client_group(group);
  if (!number) return number.status();
  if (::chown(file.c_str(), static_cast<uid_t>(-1), *number) != 0) {
    return Status::from_errno(
        errno, fmt::format("cannot give the socket '{}' to the group '{}' (run braidd "
                           "as root or as a member, or set client.group)",
                           path, group));
  }
  return Status::ok();
}

// Bound under another name and renamed when it is complete: no client meets a socket with the wrong
// mode, or one that nobody listens on.
Status listen_at(const Fd& socket, const std::string& path, const std::string& group,
                 uint32_t mode) {
  const std::string nascent = fmt::format("{}/.{}", directory_of(path), ::getpid());
  auto address = address_of(nascent);
  if (!address) {
    return make_status(StatusCode::InvalidArgument,
                       "client.socket '{}': the directory's path is too long for a socket", path);
  }
  ::unlink(nascent.c_str());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0) {
    return Status::from_errno(
        errno, fmt::format("cannot make the socket '{}' (set client.socket to a path in a "
                           "directory that braidd's user may write to)",
                           path));
  }
  Status status = give_to_group(nascent, path, group);
  if (status && ::chmod(nascent.c_str(), mode) != 0) {
    status = Status::from_errno(errno,
                                fmt::format("cannot set mode {:o} on the socket '{}'", mode, path));
  }
  if (status && ::listen(socket.get(), kBacklog) != 0) {
    status = Status::from_errno(errno, fmt::format("cannot listen on the socket '{}'", path));
  }
  if (status && ::rename(nascent.c_str(), path.c_str()) != 0) {
    status = Status::from_errno(errno, fmt::format("cannot make the socket '{}'", path));
  }
  if (!status) ::unlink(nascent.c_str());
  return status;
}

}  // namespace

Result<std::unique_ptr<UnixListener>> UnixListener::create(const std::string& path,
                                                           const std::string& group,
                                                           uint32_t mode) {
  auto address = address_of(path);
  if (!address) return address.status();
  auto directory = open_directory(directory_of(path), path);
  if (!directory) return directory.status();
  BRAID_RETURN_IF_ERROR(lock_directory(*directory, path));
  BRAID_RETURN_IF_ERROR(check_not_in_use(path, *address));
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_valid()) return Status::from_errno(errno, "cannot make a socket");
  BRAID_RETURN_IF_ERROR(listen_at(socket, path, group, mode));

  std::unique_ptr<UnixListener> listener(new UnixListener(path, std::move(socket)));
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    return Status::from_errno(errno, fmt::format("the socket '{}'", path));
  }
  listener->device_ = info.st_dev;
  listener->inode_ = info.st_ino;
  return listener;
}

UnixListener::~UnixListener() {
  struct stat info {};
  if (::lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_) {
    ::unlink(path_.c_str());
  }
}

}  // namespace braid
