// SPDX-License-Identifier: Apache-2.0
#include "advise/coded_cost.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace braid {
namespace {

constexpr double kBytesMax = 0x1p62;  // beyond any group

// seconds = at_zero + slope * bytes
struct Straight {
  double at_zero = 0;
  double slope = 0;
  double at(double bytes) const { return at_zero + slope * bytes; }
};

// Where two of them cross within (low, high), appended to `cuts`.
void add_crossing(const Straight& a, const Straight& b, double low, double high,
                  std::vector<double>& cuts) {
  if (a.slope == b.slope) return;
  const double bytes = (b.at_zero - a.at_zero) / (a.slope - b.slope);
  if (bytes > low && bytes < high) cuts.push_back(bytes);
}

// Makes the lines of T(M), piece by piece: between two cuts everything in it is straight.
class LineMaker {
 public:
  LineMaker(const CostModel& wire, const CodecProfile& codec, const CodedCost::Options& options)
      : wire_(wire.lines()), codec_(codec), options_(options) {
    BRAID_ASSERT(!wire_.empty(), "a wire's cost consists of lines");
  }

  std::vector<CostModel::Line> make() {
    double low = 0;
    for (const double high : cuts()) {
      const double middle = low + (high - low) / 2;
      std::vector<double> ends;
      const Straight all[] = {transfer(middle), work(middle), chunk_transfer(middle),
                              chunk_work(middle)};
      add_crossing(all[0], all[1], low, high, ends);
      add_crossing(all[2], all[3], low, high, ends);
      ends.push_back(high);
      std::ranges::sort(ends);
      for (const double end : ends) {
        append(low, end);
        low = end;
      }
    }
    lines_.back().bytes_max = UINT64_MAX;
    return std::move(lines_);
  }

 private:
  const CostModel::Line& wire_line(double bytes) const {
    const auto found = std::find_if(wire_.begin(), wire_.end() - 1, [&](const auto& line) {
      return bytes * codec_.wire_share() <= static_cast<double>(line.bytes_max);
    });
    return *found;
  }
  Straight transfer(double bytes) const {
    const CostModel::Line& line = wire_line(bytes);
    return {line.transfer_seconds * options_.transfer_factor,
            line.seconds_per_byte * options_.transfer_factor * codec_.wire_share()};
  }
  Straight work(double bytes) const {
    // Plain transfers are as measured, with what threads do for them; faster ones are not.
    if (codec_.coding.empty() && options_.transfer_factor >= 1) return {};
    Straight both = coding(bytes);
    both.slope += options_.carry_seconds_per_byte * codec_.wire_share() / options_.encode_threads;
    return both;
  }
  Straight coding(double bytes) const {
    if (codec_.coding.empty()) return {};
    const auto high = std::ranges::find_if(codec_.coding, [bytes](const CodingPoint& point) {
      return bytes <= static_cast<double>(point.bytes);
    });
    const double threads = options_.encode_threads;
    const auto last = codec_.coding.back();
    if (high == codec_.coding.end()) {
      return {0, last.seconds / static_cast<double>(last.bytes) / threads};
    }
    const CodingPoint low = high == codec_.coding.begin() ? CodingPoint() : *std::prev(high);
    const double slope =
        (high->seconds - low.seconds) / static_cast<double>(high->bytes - low.bytes);
    return {(low.seconds - slope * static_cast<double>(low.bytes)) / threads, slope / threads};
  }
  // A part is an n-th of a group, and no chunk is larger than a part.
  bool is_cut(double bytes) const {
    return bytes > static_cast<double>(options_.chunk_bytes) * options_.nodes;
  }
  Straight of_chunk(double bytes, Straight (LineMaker::*what)(double) const) const {
    const auto chunk = static_cast<double>(options_.chunk_bytes);
    if (is_cut(bytes)) return {(this->*what)(chunk).at(chunk), 0};
    const Straight straight = (this->*what)(bytes / options_.nodes);
    return {straight.at_zero, straight.slope / options_.nodes};
  }
  Straight chunk_transfer(double bytes) const { return of_chunk(bytes, &LineMaker::transfer); }
  Straight chunk_work(double bytes) const { return of_chunk(bytes, &LineMaker::work); }

  // Sizes at which something in T(M) may bend or jump, ascending.
  std::vector<double> cuts() const {
    std::vector<double> all = {static_cast<double>(options_.chunk_bytes) * options_.nodes};
    const auto add = [&](double bytes) {
      all.push_back(bytes);
      all.push_back(bytes * options_.nodes);
    };
    for (const CostModel::Line& line : wire_) {
      add(std::floor(static_cast<double>(line.bytes_max) / codec_.wire_share()));
    }
    for (const CodingPoint& point : codec_.coding) add(static_cast<double>(point.bytes));
    std::erase_if(all, [](double bytes) { return !(bytes < kBytesMax); });
    all.push_back(kBytesMax);
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  // What holds from low to high, where no two of its terms cross. It is flat as long as it would
  // take less than what a smaller group takes.
  void append(double low, double high) {
    const double middle = low + (high - low) / 2;
    const double startup = wire_line(middle).startup_seconds;
    const Straight longer = larger(transfer(middle), work(middle), middle, true);
    const Straight chunk = larger(chunk_transfer(middle), chunk_work(middle), middle, false);
    const Straight total = {startup + longer.at_zero + chunk.at_zero, longer.slope + chunk.slope};
    double flat_until = low;
    if (total.at(low) < floor_) {
      flat_until = total.at(high) <= floor_ ? high : (floor_ - total.at_zero) / total.slope;
      const double before = std::min(startup, floor_);
      push(flat_until, before, {floor_ - before, 0});
    }
    if (flat_until < high) push(high, startup, {total.at_zero - startup, total.slope});
    floor_ = std::max(floor_, total.at(high));
  }
  static Straight larger(Straight a, Straight b, double at, bool is_larger) {
    return (a.at(at) >= b.at(at)) == is_larger ? a : b;
  }
  void push(double high, double startup, Straight transfer) {
    const auto bytes_max = static_cast<uint64_t>(high);
    if (!lines_.empty() && bytes_max <= lines_.back().bytes_max) return;  // less than a byte long
    lines_.push_back({bytes_max, startup, transfer.at_zero, transfer.slope});
  }

  const std::vector<CostModel::Line> wire_;
  const CodecProfile& codec_;
  const CodedCost::Options& options_;
  double floor_ = 0;
  std::vector<CostModel::Line> lines_;
};

}  // namespace

CodedCost::CodedCost(const CostModel& wire, const CodecProfile& codec, const Options& options)
    : wire_(wire), lines_(LineMaker(wire, codec, options).make()) {
  if (codec.coding.empty()) return;
  const CodingPoint& last = codec.coding.back();
  const double coding = last.seconds / static_cast<double>(last.bytes);
  const double carrying = options.carry_seconds_per_byte * codec.wire_share();
  const double transfer = wire.lines().back().seconds_per_byte * options.transfer_factor;
  is_coding_slower_ = (coding + carrying) / options.encode_threads > transfer * codec.wire_share();
}

CostModel::Phases CodedCost::phases(uint64_t bytes) const {
  const auto line = std::find_if(lines_.begin(), lines_.end() - 1,
                                 [bytes](const Line& one) { return bytes <= one.bytes_max; });
  return line->phases(bytes);
}

double CodedCost::slowdown(uint32_t transfers) const {
  return is_coding_slower_ ? transfers : wire_.slowdown(transfers);
}

}  // namespace braid
