// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/lifetime.h"
#include "ipc/client_connection.h"
#include "ipc/user_quotas.h"
#include "loop/timer.h"
#include "loop/user_turns.h"

namespace braid {

// What clients have asked about the daemon and its jobs, and wait for. One answer is made for all
// who ask the same before it is begun, and have the same to see. Users take turns, in making
// answers and in sending them, and all of them together have a millisecond of each round of the
// loop; what a viewer's answers take is at most a twentieth of the time. What a user may have asked
// and not heard is counted in UserQuotas. Control loop only.
class ClientQueries {
 public:
  // So many questions of one client may wait; tools have one.
  static constexpr uint32_t kPerClientMax = 16;
  // An answer that has taken so long is followed by kPausesPerWork times as long without one.
  static constexpr uint64_t kPausesPerWork = 20;
  static constexpr uint64_t kPauseNsMax = 10'000'000'000;

  enum class Kind : uint8_t { Status, Plan, Tune, Facts, Timeline, Explanation };
  struct Question {
    Kind kind = Kind::Status;
    std::string job;     // empty: all of them
    uint32_t steps = 0;  // of a timeline
    // NOLINTNEXTLINE(modernize-use-nullptr): it takes the comparison with 0 for a pointer's
    auto operator<=>(const Question&) const = default;
  };

  // Sends the answer's next part to one who has asked; false: it was the last.
  using Send = std::function<bool(ClientConnection& asker, uint32_t part)>;
  // Makes an answer from what was gathered, on the loop, in the asker's turn.
  using Build = std::function<Send()>;
  // To be called once, on the loop. `work_ns`: what other threads have taken for it.
  using Made = std::function<void(Build build, uint64_t work_ns)>;
  // Begins to make an answer for a viewer: a user, or who sees everything (kSeesAll).
  using Make = std::function<void(uid_t viewer, const Question&, Made)>;
  using Find = std::function<ClientConnection*(uint64_t client)>;  // nullptr: it has closed

  static constexpr uid_t kSeesAll = 0;

  // `clock` outlives it. No `quotas`: users are not told apart.
  ClientQueries(Loop& loop, const Clock& clock, std::shared_ptr<UserQuotas> quotas, Find find,
                Make make)
      : loop_(loop),
        clock_(clock),
        quotas_(std::move(quotas)),
        find_(std::move(find)),
        make_(std::move(make)),
        turns_(loop, clock) {}
  ~ClientQueries() { lifetime_.end(); }

  // Answered later, never from within this call. ResourceExhausted: too much of this client, or of
  // its user, waits already.
  Status ask(uint64_t client, uid_t user, uid_t viewer, Question question);
  uint64_t answers_made() const { return answers_made_; }

 private:
  struct Asker {
    uint64_t client = 0;
    uid_t user = 0;
    std::shared_ptr<UserCharge> charge;  // this question
  };
  using Askers = std::vector<Asker>;
  struct Viewer {
    explicit Viewer(Loop& loop) : pause(loop) {}
    std::map<Question, Askers> asked;   // not begun
    std::map<Question, Askers> making;  // begun
    std::deque<Question> order;         // in which they begin
    uint64_t next_ns = 0;               // not earlier
    bool is_scheduled = false;
    Timer pause;
  };

  void schedule(uid_t viewer);
  void begin_next(uid_t viewer);
  void build(uid_t viewer, const Question& question, const Build& build, uint64_t work_ns);
  void spend(Viewer& viewer, uint64_t work_ns);
  void send(const std::shared_ptr<const Send>& send, const Asker& asker);
  void forget_idle();

  Loop& loop_;
  const Clock& clock_;
  const std::shared_ptr<UserQuotas> quotas_;
  const Find find_;
  const Make make_;
  std::map<uid_t, std::unique_ptr<Viewer>> viewers_;
  std::unordered_map<uint64_t, uint32_t> waiting_;  // questions, by client
  uint64_t answers_made_ = 0;
  UserTurns turns_;
  Lifetime lifetime_;
};

}  // namespace braid
