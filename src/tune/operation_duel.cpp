// SPDX-License-Identifier: Apache-2.0
#include "tune/operation_duel.h"

#include <algorithm>
#include <cstdlib>

#include "planner/robust_line.h"

namespace braid {
namespace {

constexpr uint32_t kTurnsPerRound = 4;

}  // namespace

OperationDuel::OperationDuel(size_t nodes)
    : turn_ns_(std::max(kTurnNsMin, nodes * kTurnNsPerNode)) {}

bool OperationDuel::on_operation(uint64_t now_ns) {
  if (!is_settled(now_ns)) return false;
  ++operations_;
  if (is_too_late(now_ns)) {
    gains_.assign(
        1, usual_seconds_ * operations_ / (static_cast<double>(now_ns - turn_began_ns_) * 1e-9));
    end(now_ns);
    return true;
  }
  if (operations_ < turn_operations_) return false;
  // A clock of coarse ticks may show none.
  const auto turn_ns = static_cast<double>(std::max<uint64_t>(1, now_ns - turn_began_ns_));
  const double seconds = turn_ns * 1e-9 / operations_;
  operations_ = 0;
  turn_began_ns_ = now_ns;
  return is_on_ ? on_turn(seconds, now_ns) : on_watched(seconds, now_ns);
}

void OperationDuel::pass_over(uint64_t now_ns) {
  operations_ = 0;
  turn_began_ns_ = now_ns;
}

bool OperationDuel::is_settled(uint64_t now_ns) {
  if (to_settle_ == 0) return true;
  --to_settle_;
  if (kSettleOperations - to_settle_ >= kSettleOperationsMin && now_ns - taken_ns_ >= turn_ns_)
    to_settle_ = 0;
  turn_began_ns_ = now_ns;
  return false;
}

bool OperationDuel::is_too_late(uint64_t now_ns) const {
  if (!is_on_ || !is_rivals_turn_) return false;
  const double late_ns = static_cast<double>(now_ns - turn_began_ns_) -
                         usual_seconds_ * 1e9 * static_cast<double>(operations_);
  return late_ns > static_cast<double>(kLateNsMax) &&
         late_ns > usual_seconds_ * 1e9 * static_cast<double>(turn_operations_) / 2;
}

bool OperationDuel::on_watched(double seconds, uint64_t now_ns) {
  if (has_other_pace(seconds)) pause_ns_ = pause_ns_min_;
  if (now_ns - ended_ns_ < pause_ns_) return false;
  return begin(seconds, now_ns);
}

bool OperationDuel::begin(double seconds, uint64_t now_ns) {
  const double wanted = static_cast<double>(turn_ns_) * 1e-9 / seconds;
  const double enough = static_cast<double>(kTurnNsEnough) * 1e-9 / seconds;
  const double fewest = std::clamp<double>(enough, kTurnOperationsFew, kTurnOperationsMin);
  turn_operations_ = static_cast<uint32_t>(std::clamp<double>(wanted, fewest, kTurnOperationsMax));
  is_on_ = true;
  began_ns_ = now_ns;
  turns_ = 0;
  gains_.clear();
  return take(false, now_ns);
}

bool OperationDuel::on_turn(double seconds, uint64_t now_ns) {
  if (!is_rivals_turn_) usual_seconds_ = seconds;
  if (turns_ % 2 == 0) {
    first_of_pair_ = seconds;
  } else {
    gains_.push_back(is_rivals_turn_ ? first_of_pair_ / seconds : seconds / first_of_pair_);
  }
  ++turns_;
  if (is_decided()) {
    end(now_ns);
    return true;
  }
  const uint32_t turn = turns_ % kTurnsPerRound;
  return take(turn == 1 || turn == 2, now_ns);
}

bool OperationDuel::is_won() const {
  const size_t won = pairs_won();
  const auto is_won_at = [&](const Stage& stage) {
    return won >= stage.to_win && gains_.size() <= stage.pairs;
  };
  return std::ranges::any_of(kStages, is_won_at) && median_of(gains_) >= kGainToWin;
}

// What is lost goes on to the end of the stage where that costs little: a duel that ends with a
// lost pair makes the gain look smaller than it is.
bool OperationDuel::is_decided() const {
  const size_t pairs = gains_.size();
  if (pairs == 0) return false;
  const size_t lost = pairs - pairs_won();
  if (is_won() || pairs == kStages.back().pairs) return true;
  const double gain = median_of(gains_);
  if (lost > kStages[0].pairs - kStages[0].to_win && gain < kGainToGiveUp) return true;
  const bool is_end_of_stage =
      std::ranges::any_of(kStages, [&](const Stage& stage) { return stage.pairs == pairs; });
  return is_end_of_stage && gain < kGainToWin;
}

size_t OperationDuel::pairs_won() const {
  return static_cast<size_t>(std::ranges::count_if(gains_, [](double gain) { return gain > 1; }));
}

void OperationDuel::end(uint64_t now_ns) {
  const bool paid = finding_.pays;
  finding_.gain = median_of(gains_);
  finding_.pays = is_won();
  ++finding_.duels;
  pause_ns_min_ = std::max(kPauseNsMin, kPausePerDuel * (now_ns - began_ns_));
  const uint64_t doubled_ns = finding_.pays == paid ? std::min(2 * pause_ns_, kPauseNsMax) : 0;
  pause_ns_ = std::max(doubled_ns, pause_ns_min_);
  ended_ns_ = now_ns;
  is_on_ = false;
  operations_ = 0;
  paces_.clear();
  usual_pace_.reset();
  turns_apart_ = 0;
  (void)take(finding_.pays, now_ns);
}

bool OperationDuel::has_other_pace(double seconds) {
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
bool OperationDuel::take(bool rival, uint64_t now_ns) {
  if (rival == is_rivals_turn_) return false;
  is_rivals_turn_ = rival;
  to_settle_ = kSettleOperations;
  taken_ns_ = now_ns;
  return true;
}

}  // namespace braid
