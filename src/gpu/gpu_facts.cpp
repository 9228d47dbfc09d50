// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu_facts.h"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>

namespace braid {
namespace {

struct Xid {
  uint32_t number;
  bool is_of_program;
  std::string_view meaning;
};
constexpr std::array<Xid, 16> kXids = {{
    {13, true, "the program's kernel failed"},
    {31, true, "the program used memory that is not its own"},
    {43, true, "the program's kernel was stopped"},
    {45, true, "the program was ended"},
    {48, false, "an uncorrectable memory error"},
    {61, false, "the GPU's controller stopped"},
    {62, false, "the GPU's controller stopped"},
    {63, false, "a bad piece of memory will be replaced"},
    {64, false, "a bad piece of memory could not be replaced"},
    {69, true, "the program's kernel failed"},
    {74, false, "an NVLink failed"},
    {79, false, "the GPU has fallen off the bus"},
    {94, false, "an uncorrectable memory error that hit one program"},
    {95, false, "an uncorrectable memory error that hit all programs"},
    {119, false, "the GPU's system processor does not answer"},
    {120, false, "the GPU's system processor failed"},
}};

const Xid* find_xid(uint32_t number) {
  const auto found = std::ranges::find(kXids, number, &Xid::number);
  return found == kXids.end() ? nullptr : &*found;
}

}  // namespace

const GpuFacts::Reason* GpuFacts::find_reason(std::string_view reason) const {
  const auto found = std::ranges::find(reasons, reason, &Reason::name);
  return found == reasons.end() ? nullptr : &*found;
}

std::string GpuFacts::format_time_of(uint64_t at) const {
  constexpr uint64_t kDay = 86'400;
  const auto seconds = static_cast<std::time_t>(at);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::string time = fmt::format("{:02}:{:02} UTC", utc.tm_hour, utc.tm_min);
  if (at / kDay == read_at / kDay) return time;
  return fmt::format("{:04}-{:02}-{:02} {}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, time);
}

std::string_view xid_meaning(uint32_t xid) {
  const Xid* known = find_xid(xid);
  return known == nullptr ? std::string_view() : known->meaning;
}

bool is_xid_of_program(uint32_t xid) {
  const Xid* known = find_xid(xid);
  return known != nullptr && known->is_of_program;
}

}  // namespace braid
