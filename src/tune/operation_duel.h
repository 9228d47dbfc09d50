// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace braid {

// Two ways to carry one job's operations, the usual one and a rival (threads that wait poll; chunks
// take few flows), decided by what they do to the job: they take turns, and each turn's time for an
// operation is compared with its neighbour's. That time runs from one operation's end to the next
// one's, so it holds all that the rival can change: how soon daemons and trainers go on, and what
// is taken from trainers that compute.
//
// Turns go usual, rival, rival, usual, so a load that grows or goes favours neither. All nodes of
// the job change sides together. The rival holds only if it has won nearly all pairs of turns and
// is quicker by more than noise; else the usual way goes on, as at the beginning. On a busy machine
// a rival that is quicker wins fewer pairs: then the duel goes on for up to three times as many. A
// turn of the rival that takes far too long ends at once, and the duel with it: few flows may be
// several times slower.
//
// The next duel comes after a pause of 64 times the duel or more, which doubles while the verdict
// stays the same, and is short again when operations have become slower or faster for long. So not
// more than 0.8 % of the time goes to turns of a rival in vain.
//
// No thread of its own: one caller at a time. Times are of any clock that only grows.
class OperationDuel {
 public:
  // The rival has to win so many of so many pairs, which by chance alone happens in 2, 1 and 1 % of
  // all duels. A duel goes on to the next stage only where the median of the pairs' gains is
  // enough.
  struct Stage {
    size_t pairs;
    size_t to_win;
  };
  static constexpr std::array<Stage, 3> kStages = {{{12, 10}, {24, 18}, {36, 26}}};
  static constexpr double kGainToWin = 1.03;
  static constexpr double kGainToGiveUp = 0.9;  // a duel that is lost ends early
  static constexpr uint32_t kTurnOperationsMin = 64;
  static constexpr uint32_t kTurnOperationsMax = 4096;
  static constexpr uint64_t kTurnNsMin = 20'000'000;
  static constexpr uint64_t kTurnNsPerNode = 500'000;  // to tell all nodes costs, too
  // Where kTurnOperationsMin take longer, a turn has fewer.
  static constexpr uint64_t kTurnNsEnough = 1'000'000'000;
  static constexpr uint32_t kTurnOperationsFew = 16;
  // A turn of the rival may take so much longer than one of the usual way, or half as long again if
  // that is more: a hiccup ends no duel.
  static constexpr uint64_t kLateNsMax = 250'000'000;
  // Operations that do not count after a change of sides, since the other nodes have to hear of it;
  // fewer, if they take as long as a turn has to.
  static constexpr uint32_t kSettleOperations = 8;
  static constexpr uint32_t kSettleOperationsMin = 2;
  static constexpr uint64_t kPausePerDuel = 64;
  static constexpr uint64_t kPauseNsMin = 2'000'000'000;
  static constexpr uint64_t kPauseNsMax = 300'000'000'000;  // unless 64 duels take longer
  // Operations have another pace when so many turns in a row, outside of duels, were all slower
  // or all faster than before by so much.
  static constexpr uint32_t kTurnsOfChange = 8;
  static constexpr double kChange = 1.25;

  struct Finding {
    bool pays = false;   // the rival holds, but for turns of the next duel
    double gain = 0;     // the usual way's seconds ÷ the rival's, of the last duel; 0: no duel
    uint32_t duels = 0;  // that are over
    bool operator==(const Finding&) const = default;
  };

  explicit OperationDuel(size_t nodes);

  // An operation of the job has ended. True: is_rivals_turn() or finding() is another now.
  bool on_operation(uint64_t now_ns);
  // One has ended that does not count, since something else is being tried. Not within a duel.
  void pass_over(uint64_t now_ns);
  bool is_on() const { return is_on_; }
  bool is_rivals_turn() const { return is_rivals_turn_; }
  const Finding& finding() const { return finding_; }

 private:
  bool is_settled(uint64_t now_ns);
  bool on_turn(double seconds, uint64_t now_ns);
  bool on_watched(double seconds, uint64_t now_ns);
  bool begin(double seconds, uint64_t now_ns);
  void end(uint64_t now_ns);
  bool is_too_late(uint64_t now_ns) const;
  bool is_won() const;
  bool is_decided() const;
  size_t pairs_won() const;
  bool has_other_pace(double seconds);
  bool take(bool rival, uint64_t now_ns);

  const uint64_t turn_ns_;
  bool is_rivals_turn_ = false;
  Finding finding_;
  // The turn.
  uint32_t to_settle_ = kSettleOperations;
  uint64_t taken_ns_ = 0;  // when sides changed
  uint32_t turn_operations_ = kTurnOperationsMin;
  uint32_t operations_ = 0;
  uint64_t turn_began_ns_ = 0;
  // The duel.
  bool is_on_ = false;
  uint64_t began_ns_ = 0;
  uint32_t turns_ = 0;
  double first_of_pair_ = 0;   // seconds
  double usual_seconds_ = 0;   // in the latest turn of the usual way
  std::vector<double> gains_;  // one of each pair
  // Between duels.
  uint64_t ended_ns_ = 0;
  uint64_t pause_ns_ = 0;  // nothing yet: the first duel begins soon
  uint64_t pause_ns_min_ = kPauseNsMin;
  std::vector<double> paces_;  // until there is a usual one
  std::optional<double> usual_pace_;
  int turns_apart_ = 0;  // in a row; less than 0: faster ones
};

}  // namespace braid
