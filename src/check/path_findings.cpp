// SPDX-License-Identifier: Apache-2.0
#include "check/path_findings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "base/socket_address.h"

namespace braid {
namespace {

std::string format_span(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  return fmt::format("{:.0f} minutes", seconds / 60);
}

std::string at(const PathEnd& end) {
  return fmt::format("'{}' ({})", end.name, host_and_port(end.address, end.port));
}

PathFinding judge_reach(const PathFacts& facts) {
  if (!facts.to_there.control.empty()) {
    return {"reach", false,
            fmt::format("it answers at {}, but not where it tells other nodes to find it: {}; set "
                        "node.address there to an address that all nodes reach",
                        facts.asked, facts.to_there.control)};
  }
  const std::string round_trip =
      facts.round_trip_ns == 0
          ? ""
          : fmt::format(", round trip {}",
                        format_span(static_cast<double>(facts.round_trip_ns) / 1e9));
  return {"reach", true,
          fmt::format("node {}{}; both have the same cluster key", at(facts.there), round_trip)};
}

PathFinding judge_back(const PathFacts& facts) {
  if (facts.to_here.control.empty())
    return {"back", true, fmt::format("it reaches this node at {}", at(facts.here))};
  return {"back", false,
          fmt::format("node '{}' does not reach this node at {}: {}; let TCP port {} of this node "
                      "through, or set node.address here to an address that all nodes reach",
                      facts.there.name, at(facts.here), facts.to_here.control, facts.here.port)};
}

PathFinding judge_version(const PathFacts& facts) {
  if (facts.here.version == facts.there.version)
    return {"version", true, fmt::format("braid {} on both", facts.here.version)};
  return {"version", false,
          fmt::format("braid {} here and {} on node '{}': all daemons of a cluster should have one "
                      "version, so upgrade the older one",
                      facts.here.version, facts.there.version, facts.there.name)};
}

PathFinding judge_settings(const PathFacts& facts) {
  std::string unlike;
  const auto compare = [&](const char* key, uint64_t here, uint64_t there) {
    if (here == there) return;
    unlike +=
        fmt::format("{}{} is {} here and {} there", unlike.empty() ? "" : ", ", key, here, there);
  };
  compare("collective.unit_bytes", facts.here.unit_bytes, facts.there.unit_bytes);
  compare("transport.chunk_bytes", facts.here.chunk_bytes, facts.there.chunk_bytes);
  compare("transport.io_threads", facts.here.io_loops, facts.there.io_loops);
  compare("the number of transport.rails", facts.here.rails.size(), facts.there.rails.size());
  if (unlike.empty()) {
    return {"settings", true,
            fmt::format("unit_bytes {}, chunk_bytes {}, io_threads {}, rails {} on both",
                        facts.here.unit_bytes, facts.here.chunk_bytes, facts.here.io_loops,
                        facts.here.rails.size())};
  }
  return {
      "settings", false,
      fmt::format("{}: set them to the same on all nodes, or jobs on both are refused", unlike)};
}

PathFinding judge_clock(const PathFacts& facts) {
  const auto ahead_ns = static_cast<uint64_t>(std::abs(facts.clock_ahead_ns));
  const std::string text =
      fmt::format("{} {} this node's", format_span(static_cast<double>(ahead_ns) / 1e9),
                  facts.clock_ahead_ns < 0 ? "behind" : "ahead of");
  if (ahead_ns <= kClockAheadNsMax + facts.clock_error_ns) return {"clock", true, text};
  return {"clock", false,
          fmt::format("the clock of node '{}' is {}: their logs cannot be compared; let chrony or "
                      "systemd-timesyncd set both (timedatectl)",
                      facts.there.name, text)};
}

std::string rail_text(const PathEnd::Rail& rail) {
  std::string text = fmt::format("{} {}", rail.name, rail.mtu);
  if (rail.speed_mbit != 0) text += fmt::format(" ({} Gbit/s)", rail.speed_mbit / 1000.0);
  return text;
}

PathFinding judge_mtu(const PathFacts& facts) {
  std::string good;
  std::string bad;
  const size_t rails = std::min(facts.here.rails.size(), facts.there.rails.size());
  for (size_t i = 0; i < rails; ++i) {
    const PathEnd::Rail& here = facts.here.rails[i];
    const PathEnd::Rail& there = facts.there.rails[i];
    const std::string both = fmt::format("{} here, {} there", rail_text(here), rail_text(there));
    good += (good.empty() ? "" : "; ") + both;
    if (!here.is_up || !there.is_up) {
      bad += fmt::format("rail {} has no carrier {}: look at its cable and switch port; ",
                         here.is_up ? there.name : here.name, here.is_up ? "there" : "here");
    }
    if (here.mtu != there.mtu)
      bad += fmt::format("MTU {}: set both, and the switches between, to the same; ", both);
    if (here.speed_mbit != 0 && there.speed_mbit != 0 && here.speed_mbit != there.speed_mbit)
      bad += fmt::format("links of unlike speed, {}: look at the slower port; ", both);
  }
  if (bad.empty()) return {"mtu", true, good.empty() ? "no rails in common" : good};
  bad.resize(bad.size() - 2);
  return {"mtu", false, bad};
}

PathFinding judge_flows(const PathFacts& facts) {
  std::string bad;
  if (!facts.to_there.flows.empty())
    bad += fmt::format("from here to node '{}': {}", facts.there.name, facts.to_there.flows);
  if (!facts.to_here.flows.empty()) {
    bad += fmt::format("{}from node '{}' to here: {}", bad.empty() ? "" : "; ", facts.there.name,
                       facts.to_here.flows);
  }
  if (!bad.empty()) {
    return {
        "flows", false,
        bad +
            "; flows use TCP ports that the kernel chooses, or those from transport.port on: let "
            "them through in both directions"};
  }
  return {"flows", true,
          fmt::format("{} open to there, {} back",
                      uint64_t{facts.here.flows_per_link} * facts.here.io_loops,
                      uint64_t{facts.there.flows_per_link} * facts.there.io_loops)};
}

struct Direction {
  std::string from_to;  // "to there"
  const PathRate* one = nullptr;
  const PathRate* all = nullptr;
};

// What was wrong while it was measured; empty: nothing.
std::string trouble_of(const Direction& direction) {
  for (const PathRate* rate : {direction.one, direction.all}) {
    if (!rate->error.empty()) return fmt::format("{}: {}", direction.from_to, rate->error);
    if (rate->bytes == 0) {
      return fmt::format(
          "{}: no chunk arrived within {}, though small messages pass: where packets of full size "
          "are lost, some hop has a smaller MTU (ping -M do -s 1472 shows it); else the way is "
          "overloaded{}",
          direction.from_to, format_span(static_cast<double>(rate->nanoseconds) / 1e9),
          rate->flow_error.empty() ? "" : " (" + rate->flow_error + ")");
    }
    if (rate->flows_failed != 0) {
      return fmt::format("{}: {} flows failed meanwhile, the last one so: {}", direction.from_to,
                         rate->flows_failed, rate->flow_error);
    }
  }
  return "";
}

std::string rate_text(const Direction& direction) {
  std::string text =
      fmt::format("{} {} one flow, {} all {}", direction.from_to,
                  format_bit_rate(direction.one->bytes_per_second()),
                  format_bit_rate(direction.all->bytes_per_second()), direction.all->flows);
  if (direction.all->slowest_flow > 0 &&
      direction.all->slowest_flow < kSlowDirection * direction.all->median_flow) {
    text += fmt::format(" (the slowest {}, most {})", format_bit_rate(direction.all->slowest_flow),
                        format_bit_rate(direction.all->median_flow));
  }
  return text;
}

PathFinding judge_rate(const Direction& there, const Direction& back) {
  for (const Direction* one : {&there, &back}) {
    if (const std::string trouble = trouble_of(*one); !trouble.empty())
      return {"rate", false, trouble};
  }
  const std::string text = fmt::format("{}; {}", rate_text(there), rate_text(back));
  const double forth = there.all->bytes_per_second();
  const double home = back.all->bytes_per_second();
  if (std::min(forth, home) >= kSlowDirection * std::max(forth, home)) return {"rate", true, text};
  return {"rate", false,
          fmt::format("{}: {} is less than half as fast; what else uses that way, and do its NIC "
                      "and switch port run at full speed?",
                      text, forth < home ? there.from_to : back.from_to)};
}

double resent_share(const PathRate& rate) {
  return rate.segments == 0
             ? 0
             : static_cast<double>(rate.segments_resent) / static_cast<double>(rate.segments);
}

PathFinding judge_loss(const Direction& there, const Direction& back) {
  if (there.all->segments == 0 && back.all->segments == 0)
    return {"loss", true, "not known: no flow is a TCP connection"};
  const auto worst = [](const Direction& one) {
    return std::max(resent_share(*one.one), resent_share(*one.all));
  };
  const std::string text = fmt::format("{} {:.2f} %, {} {:.2f} % sent again", there.from_to,
                                       100 * worst(there), back.from_to, 100 * worst(back));
  if (std::max(worst(there), worst(back)) <= kSegmentsResentMax) return {"loss", true, text};
  return {"loss", false,
          fmt::format("{}, and up to {:.0f} % is usual: look for errors and drops on the way "
                      "(ethtool -S, the switch's counters)",
                      text, 100 * kSegmentsResentMax)};
}

}  // namespace

std::string format_bit_rate(double bytes_per_second) {
  const double bits = bytes_per_second * 8;
  if (bits >= 1e9) return fmt::format("{:.2f} Gbit/s", bits / 1e9);
  return bits >= 1e6 ? fmt::format("{:.1f} Mbit/s", bits / 1e6)
                     : fmt::format("{:.0f} kbit/s", bits / 1e3);
}

std::vector<PathFinding> path_findings(const PathFacts& facts) {
  if (!facts.error.empty()) return {{"reach", false, facts.error}};
  std::vector<PathFinding> findings = {
      judge_reach(facts), judge_back(facts), judge_version(facts), judge_settings(facts),
      judge_clock(facts), judge_mtu(facts),  judge_flows(facts)};
  if (!facts.one_to_there || !facts.one_to_here || !facts.all_to_there || !facts.all_to_here)
    return findings;
  const Direction there{"to there", &*facts.one_to_there, &*facts.all_to_there};
  const Direction back{"back", &*facts.one_to_here, &*facts.all_to_here};
  findings.push_back(judge_rate(there, back));
  if (trouble_of(there).empty() && trouble_of(back).empty())
    findings.push_back(judge_loss(there, back));
  return findings;
}

bool are_good(const std::vector<PathFinding>& findings) {
  return std::ranges::all_of(findings, [](const PathFinding& one) { return one.is_good; });
}

}  // namespace braid
