// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hmac.h"
#include "base/socket_address.h"
#include "net/flow_proof.h"
#include "net/ucx/ethtool_answers.h"

namespace braid {

// Every UCX worker on TCP listens on a port of its own, and UCX does what is said to it there: one
// message of 49 bytes writes at any address of this process, another one ends it (all versions up
// to 1.22 at least). So both ends of a connection prove themselves before UCX hears or says a word.
// UCX's calls of bind(), listen(), accept(), connect(), send() and recv() come to functions of the
// same names in ucx_sockets.cpp (those of an executable go before libc's); all other calls pass
// through.
//
//   who connects                         who listens
//   connect()                            the kernel reports a connection once it has bytes
//   send(): first its proof ───────────► accept(): reads the proof, closes what has none
//   recv(): first the answer ◄────────── and answers, before UCX gets the connection
//
// ioctl() does, too: see EthtoolAnswers. So does bind(), for UCX tries without an end where no port
// is free.
//
// Both proofs are made with a key of this one flow that travels nowhere (net/flow_keys.h). They
// differ from each other and from those for other ports, and each lets one connection in, so that
// who hears one can use it nowhere.

// The TCP sockets of one UCX worker. Used by one thread at a time, as the worker is.
class UcxSockets {
 public:
  // `strangers` counts the connections that were refused; it outlives this object. For
  // `segment_bytes` see limit_tcp_segments().
  UcxSockets(const Sha256Digest& proof_key, std::string rail, std::atomic<uint64_t>& strangers,
             int segment_bytes = 0);
  UcxSockets(const UcxSockets&) = delete;
  UcxSockets& operator=(const UcxSockets&) = delete;
  ~UcxSockets();  // after UCX has closed the sockets

  // While it exists, UCX's calls on this thread are about `sockets`: they own what it begins to
  // listen on and to connect.
  class Use {
   public:
    explicit Use(UcxSockets& sockets);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();

   private:
    UcxSockets* const outer_;
  };

  bool has_listeners() const { return !listeners_.empty(); }
  // Where the worker listens; nothing if it does at several addresses, or at none.
  std::optional<SocketAddress> listening_at() const;
  // A port was wanted and none was free. The text says which ports there are, as the end of a
  // sentence; empty: no such thing has happened.
  std::string missing_ports() const;
  // From now on the kernel drops what arrives at the listening sockets, as if nobody listened.
  // Connections that UCX has are not touched. Nobody is waited for.
  void shut();
  // UCX is about to close its connections. It says so to the other side, and repeats send() for as
  // long as a socket is full, which on a silent path is until the path is well again. From now on
  // such a send() fails instead.
  void end() { is_ending_ = true; }

 private:
  friend struct UcxCalls;
  struct Begun;
  struct Listening {
    int socket;
    uint64_t cookie;
    SocketAddress address;
  };
  const Sha256Digest proof_key_;
  const std::string rail_;
  std::atomic<uint64_t>& strangers_;
  const int segment_bytes_;
  std::vector<Listening> listeners_;
  std::vector<Begun> begun_;  // connections
  EthtoolAnswers ethtool_;
  std::atomic<bool> is_shut_ = false;  // read on UCX's thread, too
  bool is_ending_ = false;
  uint32_t ports_in_use_ = 0;  // that bind() has met
  bool are_ports_missing_ = false;
};

}  // namespace braid
