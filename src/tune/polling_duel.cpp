// SPDX-License-Identifier: Apache-2.0
#include "tune/polling_duel.h"

#include <algorithm>
#include <cstdlib>

#include "planner/robust_line.h"

namespace braid {
namespace {

constexpr uint32_t kTurnsPerRound = 4;

}  // namespace

PollingDuel::PollingDuel(size_t nodes) : turn_ns_(std::max(kTurnNsMin, nodes * kTurnNsPerNode)) {}

bool PollingDuel::on_operation(uint64_t now_ns) {
  if (to_settle_ > 0) {
    --to_settle_;
    turn_began_ns_ = now_ns;
    return false;
  }
  if (++operations_ < turn_operations_) return false;
  // A clock of coarse ticks may show none.
  const auto turn_ns = static_cast<double>(std::max<uint64_t>(1, now_ns - turn_began_ns_));
  const double seconds = turn_ns * 1e-9 / operations_;
  operations_ = 0;
  turn_began_ns_ = now_ns;
  return is_on_ ? on_turn(seconds, now_ns) : on_watched(seconds, now_ns);
}

bool PollingDuel::on_watched(double seconds, uint64_t now_ns) {
  if (has_other_pace(seconds)) pause_ns_ = pause_ns_min_;
  if (now_ns - ended_ns_ < pause_ns_) return false;
  return begin(seconds, now_ns);
}

bool PollingDuel::begin(double seconds, uint64_t now_ns) {
  const double wanted = static_cast<double>(turn_ns_) * 1e-9 / seconds;
  turn_operations_ =
      static_cast<uint32_t>(std::clamp<double>(wanted, kTurnOperationsMin, kTurnOperationsMax));
  is_on_ = true;
  began_ns_ = now_ns;
  turns_ = 0;
  gains_.clear();
  return poll(false);
}

bool PollingDuel::on_turn(double seconds, uint64_t now_ns) {
  if (turns_ % 2 == 0) {
    first_of_pair_ = seconds;
  } else {
    gains_.push_back(polls_ ? first_of_pair_ / seconds : seconds / first_of_pair_);
  }
  ++turns_;
  if (is_decided()) {
    end(now_ns);
    return true;
  }
  const uint32_t turn = turns_ % kTurnsPerRound;
  return poll(turn == 1 || turn == 2);
}

// What is lost goes on to the end where that costs little: a duel that ends with a lost pair makes
// the gain look smaller than it is.
bool PollingDuel::is_decided() const {
  const size_t won = pairs_won();
  const bool is_lost = gains_.size() - won > kPairs - kPairsToWin;
  return won == kPairsToWin || gains_.size() == kPairs ||
         (is_lost && median_of(gains_) < kGainToGiveUp);
}

size_t PollingDuel::pairs_won() const {
  return static_cast<size_t>(std::ranges::count_if(gains_, [](double gain) { return gain > 1; }));
}

void PollingDuel::end(uint64_t now_ns) {
  const bool paid = finding_.pays;
  finding_.gain = median_of(gains_);
  finding_.pays = pairs_won() == kPairsToWin && finding_.gain >= kGainToWin;
  ++finding_.duels;
  pause_ns_min_ = std::max(kPauseNsMin, kPausePerDuel * (now_ns - began_ns_));
  const uint64_t doubled_ns = finding_.pays == paid ? std::min(2 * pause_ns_, kPauseNsMax) : 0;
  pause_ns_ = std::max(doubled_ns, pause_ns_min_);
  ended_ns_ = now_ns;
  is_on_ = false;
  paces_.clear();
  usual_pace_.reset();
  turns_apart_ = 0;
  (void)poll(finding_.pays);
}

bool PollingDuel::has_other_pace(double seconds) {
  if (!usual_pace_) {
    paces_.push_back(seconds);
    if (paces_.size() == kTurnsOfChange) usual_pace_ = median_of(paces_);
    return false;
  }
  const bool is_slower = seconds > *usual_pace_ * kChange;
  const bool is_faster = seconds * kChange < *usual_pace_;
  if (is_slower) {
    turns_apart_ = std::max(turns_apart_, 0) + 1;
  } else if (is_faster) {
    turns_apart_ = std::min(turns_apart_, 0) - 1;
  } else {
    turns_apart_ = 0;
  }
  return std::abs(turns_apart_) >= static_cast<int>(kTurnsOfChange);
}

// True: that is another side.
bool PollingDuel::poll(bool polls) {
  if (polls == polls_) return false;
  polls_ = polls;
  to_settle_ = kSettleOperations;
  return true;
}

}  // namespace braid
