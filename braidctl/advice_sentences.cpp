// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/ranges.h>

#include "braidctl/advice_report.h"

namespace braid {
namespace {

constexpr size_t kLosersMax = 3;

// Amounts of time in one unit, that of the whole step.
class Milliseconds {
 public:
  explicit Milliseconds(double whole_seconds) : unit_(unit_of(whole_seconds)) {}
  // Three digits, of whole numbers all.
  std::string operator()(double seconds) const {
    const double amount = seconds * unit_.per_second;
    const int decimals = std::abs(amount) >= 100 ? 0 : std::abs(amount) >= 10 ? 1 : 2;
    return fmt::format("{:.{}f} {}", amount, decimals, unit_.name);
  }

 private:
  struct Unit {
    const char* name;
    double per_second;
  };
  static Unit unit_of(double seconds) {
    if (seconds < 1e-3) return {"µs", 1e6};
    if (seconds < 10) return {"ms", 1e3};
    return {"s", 1};
  }

  Unit unit_;
};

double saved_seconds(const RenderedAdvice& report, size_t row) {
  return report.plain().step_seconds - report.advice.rows[row].step_seconds;
}

// The row but the first that takes least; 0: there is no other.
size_t fastest_codec(const Advice& advice) {
  size_t best = 0;
  for (size_t i = 1; i < advice.rows.size(); ++i) {
    if (best == 0 || advice.rows[i].step_seconds < advice.rows[best].step_seconds) best = i;
  }
  return best;
}

// The codec that sends most among those whose step is as good as the recommended one's, and that
// was not taken because it only just fits; 0: there is none.
size_t just_fitting_codec(const RenderedAdvice& report) {
  const auto& rows = report.advice.rows;
  const AdviceRow& taken = rows[report.advice.recommended];
  size_t found = 0;
  for (size_t i = 1; i < rows.size() && report.advice.recommended != 0; ++i) {
    const bool is_as_good = rows[i].wire_bytes > taken.wire_bytes &&
                            taken.step_seconds > rows[i].step_seconds * (1 - report.options.margin);
    if (is_as_good && (found == 0 || rows[i].wire_bytes > rows[found].wire_bytes)) found = i;
  }
  return found;
}

// What a codec costs that makes steps shorter, and more of them; nothing where the recommended one
// does not.
std::optional<std::string> training_sentence(const RenderedAdvice& report, const Milliseconds& ms) {
  const auto& rows = report.advice.rows;
  if (!rows[report.advice.recommended].slows_training) return std::nullopt;
  size_t other = 0;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (!rows[i].slows_training && rows[i].step_seconds < rows[other].step_seconds) other = i;
  }
  std::string sentence =
      fmt::format("With {} training needs more steps", rows[report.advice.recommended].codec);
  if (other == 0) return sentence + '.';
  return sentence + fmt::format("; {}, with which it hardly ever does, saves {}.",
                                rows[other].codec, ms(saved_seconds(report, other)));
}

std::string margin_text(const RenderedAdvice& report) {
  return fmt::format("{:.3g} %", report.options.margin * 100);
}

// "; bf16 saves 24 ms": the honest baseline beside another codec.
std::string baseline_text(const RenderedAdvice& report, const Milliseconds& ms) {
  const auto& rows = report.advice.rows;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].codec != "bf16" || i == report.advice.recommended) continue;
    const double saved = saved_seconds(report, i);
    return fmt::format("; {} {} {}", rows[i].codec, saved < 0 ? "loses" : "saves",
                       ms(std::abs(saved)));
  }
  return {};
}

std::string bandwidth_sentence(const RenderedAdvice& report) {
  double highest = kSweepBandwidthMin;
  for (const auto& end : report.sweep.pays_up_to) {
    if (!end) {
      return fmt::format("Some codec pays even at {}.", format_bandwidth(kSweepBandwidthMax));
    }
    highest = std::max(highest, *end);
  }
  if (highest == kSweepBandwidthMin) {
    return fmt::format("Nothing pays from {} on.", format_bandwidth(highest));
  }
  return fmt::format("Nothing pays above {}.", format_bandwidth(highest));
}

// Codecs that make the step longer, the worst one first.
std::vector<std::string> loser_sentences(const RenderedAdvice& report, const Milliseconds& ms) {
  std::vector<size_t> losers;
  for (size_t i = 1; i < report.advice.rows.size(); ++i) {
    const double lost = -saved_seconds(report, i);
    if (lost > 0 && lost >= report.options.margin * report.plain().step_seconds) {
      losers.push_back(i);
    }
  }
  std::ranges::stable_sort(losers, [&report](size_t a, size_t b) {
    return saved_seconds(report, a) < saved_seconds(report, b);
  });
  if (losers.size() > kLosersMax) losers.resize(kLosersMax);
  std::vector<std::string> sentences;
  for (const size_t i : losers) {
    const AdviceRow& row = report.advice.rows[i];
    sentences.push_back(fmt::format("{} loses {}: encoding and decoding take {}.", row.codec,
                                    ms(-saved_seconds(report, i)), ms(row.encode_seconds)));
  }
  return sentences;
}

std::vector<std::string> group_sentences(const RenderedAdvice& report, const Milliseconds& ms) {
  const Advice& advice = report.advice;
  std::vector<std::string> parts;
  for (size_t codec = 0; codec < advice.rows.size(); ++codec) {
    const auto groups = std::ranges::count_if(
        advice.groups, [codec](const AdviceGroup& group) { return group.codec == codec; });
    if (groups == 0) continue;
    parts.push_back(
        fmt::format("{} for {} of {}", advice.rows[codec].codec, groups, advice.groups.size()));
  }
  if (advice.groups.empty()) return {};
  return {fmt::format("By group, the shortest communication is that of {}: a step of {}.",
                      fmt::join(parts, ", "), ms(advice.step_by_group_seconds))};
}

}  // namespace

std::string format_bandwidth(double bits_per_second) {
  return fmt::format("{:.3g} Gbit/s", bits_per_second / 1e9);
}

std::string advice_reason(const RenderedAdvice& report) {
  const Advice& advice = report.advice;
  const Milliseconds ms(report.plain().step_seconds);
  const std::string whole = ms(report.plain().step_seconds);
  if (advice.recommended != 0) {
    return fmt::format(
        "{} would save {} of {} (predicted){}.", advice.rows[advice.recommended].codec,
        ms(saved_seconds(report, advice.recommended)), whole, baseline_text(report, ms));
  }
  const size_t best = fastest_codec(advice);
  if (best == 0) return fmt::format("No codec was looked at; the step takes {}.", whole);
  const double saved = saved_seconds(report, best);
  if (saved <= 0) {
    return fmt::format("No codec pays: {}, the fastest, would save nothing of {} (predicted).",
                       advice.rows[best].codec, whole);
  }
  return fmt::format("No codec pays: {}, the fastest, would save {} of {} (predicted), not {}.",
                     advice.rows[best].codec, ms(saved), whole, margin_text(report));
}

std::vector<std::string> advice_sentences(const RenderedAdvice& report) {
  const Advice& advice = report.advice;
  const Milliseconds ms(report.plain().step_seconds);
  std::vector<std::string> sentences = {advice_reason(report)};
  if (auto sentence = training_sentence(report, ms)) sentences.push_back(*std::move(sentence));
  if (const size_t tight = just_fitting_codec(report); tight != 0) {
    const AdviceRow& row = advice.rows[tight];
    sentences.push_back(
        fmt::format("{} only just fits: if communication takes a quarter longer, its step is {}, "
                    "that of {} {}.",
                    row.codec, ms(row.cautious_step_seconds), advice.rows[advice.recommended].codec,
                    ms(advice.rows[advice.recommended].cautious_step_seconds)));
  }
  const size_t best = fastest_codec(advice);
  if (advice.recommended != 0 && best != advice.recommended) {
    sentences.push_back(
        fmt::format("{} would save {}, but loses more of the gradient for less "
                    "than {} of the step.",
                    advice.rows[best].codec, ms(saved_seconds(report, best)), margin_text(report)));
  }
  if (advice.rows.size() > 1) sentences.push_back(bandwidth_sentence(report));
  const auto losers = loser_sentences(report, ms);
  sentences.insert(sentences.end(), losers.begin(), losers.end());
  if (advice.recommended == 0) return sentences;
  const auto groups = group_sentences(report, ms);
  sentences.insert(sentences.end(), groups.begin(), groups.end());
  return sentences;
}

}  // namespace braid
