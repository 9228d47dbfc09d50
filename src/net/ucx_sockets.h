// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "base/fd.h"
#include "loop/socket_address.h"

namespace braid {

// Every UCX worker on TCP listens on a port of its own, and UCX does what is said to it there: one
// message of 49 bytes writes at any address of this process, another one ends it (all versions up
// to 1.22 at least). So UCX gets no connection but the peer's. Its calls of listen(), accept() and
// connect() come to functions of the same names here (the executable's go before libc's); those of
// all others pass through.

// The listening sockets of one worker.
//
//   Shut ──open()──► Open ──admit()──► Awaiting ──the peer's connection went to UCX──► Shut
//
// Shut: the kernel drops what arrives, from before the port can be reached. Open: connections wait
// here, and UCX does not hear of them. Awaiting: the one that comes from where the peer says that
// it comes from goes to UCX; when there is none left to wait for, all others are closed.
//
class UcxListeners {
 public:
  UcxListeners() = default;
  UcxListeners(const UcxListeners&) = delete;
  UcxListeners& operator=(const UcxListeners&) = delete;
  ~UcxListeners();  // before UCX closes the sockets

  // Takes the sockets on which this thread listens while this one exists.
  class Collect {
   public:
    explicit Collect(UcxListeners& into);
    Collect(const Collect&) = delete;
    Collect& operator=(const Collect&) = delete;
    ~Collect();
  };

  bool empty() const { return sockets_.empty(); }
  // The calls below: I/O loop only.
  void open();
  // Once, after open(). With no sources (a transport without TCP) nobody gets in.
  void admit(const std::vector<SocketAddress>& sources);
  void shut();

 private:
  friend struct UcxSockets;
  std::vector<int> sockets_;
  std::vector<Fd> visitors_;
};

// Notes from where the connections come that this thread begins while it exists.
class UcxConnections {
 public:
  UcxConnections();
  UcxConnections(const UcxConnections&) = delete;
  UcxConnections& operator=(const UcxConnections&) = delete;
  ~UcxConnections();

  const std::vector<SocketAddress>& sources() const { return sources_; }

 private:
  friend struct UcxSockets;
  std::vector<SocketAddress> sources_;
};

// Connections that wait in all listeners of the process; for a new one the oldest goes.
inline constexpr size_t kUcxConnectionsWaitingMax = 512;

}  // namespace braid
