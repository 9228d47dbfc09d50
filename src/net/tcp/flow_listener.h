// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/fd.h"
#include "base/socket_address.h"
#include "loop/poll.h"
#include "loop/timer.h"
#include "net/flow_proof.h"

namespace braid {

// What the connecting side says first, in one segment. With kEncrypted its salt (FlowSalts)
// follows, and the listening side's salt follows the proof in the answer.
struct FlowGreeting {
  static constexpr uint32_t kMagic = 0x77614462;  // "bDaw"
  static constexpr uint32_t kVersion = 1;
  static constexpr uint32_t kEncrypted = 2;  // all that comes after the greetings is

  uint32_t magic = kMagic;
  uint32_t version = kVersion;
  uint64_t token = 0;  // FlowKeys::chunk_token: which flow it is
  FlowProof proof{};
};
static_assert(sizeof(FlowGreeting) == 48);

// Where the flows of one I/O loop on one rail are waited for. Anybody can reach it, so a connection
// is heard for exactly one greeting, which must be there when the kernel hands the connection over
// (it waits for the first bytes): what has none, or a wrong one, is closed. Nothing is kept of it.
// Loop thread only.
class FlowListener {
 public:
  // The connection that has proved itself; our side's proof was sent. `salts`: if it is encrypted.
  using Take = std::function<void(Fd connection, const FlowSalts& salts)>;

  // A listening socket; port 0: any. Errors name transport.port.
  static Result<Fd> listen(const SocketAddress& address);
  // `strangers` counts the connections that were refused.
  static Result<std::unique_ptr<FlowListener>> create(Loop& loop, Fd listening, std::string rail,
                                                      std::atomic<uint64_t>& strangers);

  const SocketAddress& address() const { return address_; }
  // The one connection that names `token`, holds the key and is encrypted, or not, as is expected
  // goes to `take`, until forget().
  void expect(uint64_t token, const Sha256Digest& proof_key, bool is_encrypted, Take take);
  void forget(uint64_t token) { expected_.erase(token); }

 private:
  struct Expected {
    Sha256Digest proof_key;
    bool is_encrypted;
    Take take;
  };

  FlowListener(Loop& loop, Fd listening, SocketAddress address, std::string rail,
               std::atomic<uint64_t>& strangers);
  Status watch();
  void accept_some();
  void greet(Fd connection, const SocketAddress* from);
  bool has_greeted(int connection, FlowSalts& salts, Take& take);
  bool answer(int connection, const Expected& expected, FlowSalts& salts) const;
  void pause();

  Loop& loop_;
  const Fd listening_;
  const SocketAddress address_;
  const std::string rail_;
  std::atomic<uint64_t>& strangers_;
  std::unique_ptr<Poll> poll_;  // goes before the socket
  Timer pause_timer_;           // there were no descriptors
  std::unordered_map<uint64_t, Expected> expected_;
};

}  // namespace braid
