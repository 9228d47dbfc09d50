// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/amount.h"
#include "explain/findings.h"

namespace braid {
namespace {

// What has failed within this time is spoken of.
constexpr double kRecentSeconds = 60;
// A flow, or a node's rails, below this share of the others is slow.
constexpr double kSlowShare = 0.5;
constexpr size_t kSiblingsMin = 3;
// A path loses packets if TCP has sent so many segments again between the looks, and in relation to
// the bytes so many times as much as on most other flows of the link.
constexpr uint64_t kResentMin = 3;
constexpr double kResentOfOthers = 3;
// Other jobs' bytes, in relation to this one's.
constexpr double kCompetingShare = 0.2;
// A daemon is starved where it waits for processors for longer than it runs, and for this share of
// what the trainers wait for the network.
constexpr double kStarvedShare = 0.5;
constexpr double kStarvedOfExposed = 0.25;

using FlowKey = std::pair<uint32_t, uint32_t>;        // I/O loop, flow
using LinkKey = std::pair<std::string, std::string>;  // peer, rail

// The rates that are known, by link and rail.
std::map<LinkKey, std::map<FlowKey, double>> rates_of(const NodeFacts& node) {
  std::map<LinkKey, std::map<FlowKey, double>> rates;
  for (const NodeFacts::Flow& flow : node.flows) {
    if (flow.bytes_per_second > 0)
      rates[{flow.peer, flow.rail}][{flow.io_loop, flow.flow}] = flow.bytes_per_second;
  }
  return rates;
}

double median_rate(const std::map<FlowKey, double>& rates) {
  std::vector<double> values;
  values.reserve(rates.size());
  for (const auto& [flow, rate] : rates) values.push_back(rate);
  return median(std::move(values));
}

struct LostFlows {
  size_t flows = 0;
  bool is_down_now = false;
  const NodeFacts::Flow* latest = nullptr;
};

void add_lost(std::map<LinkKey, LostFlows>& lost, const NodeFacts::Flow& flow) {
  LostFlows& link = lost[{flow.peer, flow.rail}];
  ++link.flows;
  link.is_down_now |= flow.state == "failed";
  if (link.latest == nullptr || flow.failed_ago_ns < link.latest->failed_ago_ns)
    link.latest = &flow;
}

struct SlowFlow {
  const NodeFacts* node = nullptr;
  const NodeFacts* earlier = nullptr;
  LinkKey link;
  FlowKey flow;
  double rate = 0;
  double usual = 0;  // of its siblings
  double share() const { return rate / usual; }
};

const NodeFacts::Flow* find_flow(const NodeFacts& node, const LinkKey& link, const FlowKey& flow) {
  const auto found = std::ranges::find_if(node.flows, [&](const NodeFacts::Flow& one) {
    return LinkKey{one.peer, one.rail} == link && FlowKey{one.io_loop, one.flow} == flow;
  });
  return found == node.flows.end() ? nullptr : &*found;
}

struct Resent {
  uint64_t segments = 0;
  double bytes = 0;  // that the flow has sent meanwhile
  double share() const { return static_cast<double>(segments) / std::max(bytes, 1.0); }
};

// What TCP has sent again of a flow between the looks; of a flow that was opened again, since then.
Resent resent_of(const NodeFacts::Flow& now, const NodeFacts::Flow& then) {
  const bool is_another = now.segments_resent < then.segments_resent;
  return {now.segments_resent - (is_another ? 0 : then.segments_resent),
          static_cast<double>(now.bytes_sent - std::min(now.bytes_sent, then.bytes_sent))};
}

// What TCP sent again, if that tells the flow from the others of its link; else empty.
std::string losses_of(const SlowFlow& slow) {
  Resent own;
  std::vector<double> shares;
  for (const NodeFacts::Flow& now : slow.node->flows) {
    if (LinkKey{now.peer, now.rail} != slow.link) continue;
    const FlowKey key{now.io_loop, now.flow};
    const NodeFacts::Flow* then = find_flow(*slow.earlier, slow.link, key);
    if (then == nullptr) continue;
    const Resent resent = resent_of(now, *then);
    shares.push_back(resent.share());
    if (key == slow.flow) own = resent;
  }
  if (own.segments < kResentMin || own.share() < kResentOfOthers * median(std::move(shares)))
    return {};
  const uint64_t window_ns = slow.node->at_ns - std::min(slow.node->at_ns, slow.earlier->at_ns);
  return fmt::format(
      "; its path loses packets: within {} TCP sent {} segments again, more for each byte than on "
      "most of its siblings",
      format_time(to_seconds(window_ns)), own.segments);
}

// Slow at both looks.
void add_slow_flows(const NodeFacts& node, const NodeFacts& earlier, std::vector<SlowFlow>& slow) {
  const auto rates_before = rates_of(earlier);
  for (const auto& [link, rates] : rates_of(node)) {
    const auto known = rates_before.find(link);
    if (rates.size() < kSiblingsMin || known == rates_before.end()) continue;
    const double usual = median_rate(rates), usual_before = median_rate(known->second);
    for (const auto& [flow, rate] : rates) {
      const auto then = known->second.find(flow);
      if (rate < kSlowShare * usual && then != known->second.end() &&
          then->second < kSlowShare * usual_before) {
        slow.push_back({&node, &earlier, link, flow, rate, usual});
      }
    }
  }
}

struct Starved {
  std::string node;
  double window = 0;  // seconds, as the next ones
  double ran = 0;
  double waited = 0;
};

// By node: so many bytes it has moved for the job and for others between the two looks.
struct Moved {
  const NodeFacts* node = nullptr;
  double own = 0;
  double others = 0;
};

}  // namespace

const NodeFacts* Evidence::earlier(const NodeFacts& node) const {
  const auto found =
      std::ranges::find(before.nodes, node.node, [](const NodeFacts& one) { return one.node; });
  return found == before.nodes.end() ? nullptr : &*found;
}

double rail_capacity(const NodeFacts& node) {
  double capacity = 0;
  std::map<LinkKey, size_t> open;
  for (const NodeFacts::Flow& flow : node.flows) {
    if (flow.state == "open") ++open[{flow.peer, flow.rail}];
  }
  // A flow whose rate is not known delivers what the others of its link do.
  for (const auto& [link, rates] : rates_of(node)) {
    double sum = 0;
    for (const auto& [flow, rate] : rates) sum += rate;
    const auto known = static_cast<double>(rates.size());
    capacity += sum / known * std::max(known, static_cast<double>(open[link]));
  }
  return capacity;
}

void find_lost_flows(const Evidence& evidence, Findings& findings) {
  for (const NodeFacts& node : evidence.after.nodes) {
    const std::set<std::string> down(node.rails_down.begin(), node.rails_down.end());
    std::map<LinkKey, LostFlows> lost;
    for (const NodeFacts::Flow& flow : node.flows) {
      const bool is_recent =
          flow.failed_ago_ns != 0 && to_seconds(flow.failed_ago_ns) < kRecentSeconds;
      if ((is_recent || flow.state == "failed") && !down.contains(flow.rail)) add_lost(lost, flow);
    }
    for (const auto& [link, what] : lost) {
      Finding finding{Cause::LostFlow, {}, {}, 0, node.node, {}};
      if (evidence.is_exposed()) finding.seconds_per_step = evidence.exposed_seconds;
      finding.text = fmt::format(
          "{} of the flows from {} to {} over {} {} within the last minute, the last one {} ago{}",
          what.flows, node.node, link.first, link.second,
          what.is_down_now ? "failed, and some are not open again,"
                           : "failed and were opened again",
          format_time(to_seconds(what.latest->failed_ago_ns)),
          what.latest->error.empty() ? "" : ": " + what.latest->error);
      finding.advice =
          "the other flows carry its chunks meanwhile; look for losses, a full table of a firewall "
          "or NAT, or a path that drops packets between the two nodes";
      findings.push_back(std::move(finding));
    }
  }
}

void find_rails_down(const Evidence& evidence, Findings& findings) {
  for (const NodeFacts& node : evidence.after.nodes) {
    if (node.rails_down.empty()) continue;
    Finding finding{Cause::RailDown, {}, {}, 0, node.node, {}};
    if (evidence.is_exposed()) finding.seconds_per_step = evidence.exposed_seconds;
    finding.text = fmt::format(
        "Rail {} of {} is down ({} of {} rails): its flows wait, and the others carry all",
        fmt::join(node.rails_down, ", "), node.node, node.rails_down.size(), node.rails.size());
    finding.advice = fmt::format(
        "look at its cable, its switch port and its driver (ip link show); braidd on {} uses it "
        "again as soon as it has a carrier",
        node.node);
    findings.push_back(std::move(finding));
  }
}

void find_slow_flows(const Evidence& evidence, Findings& findings) {
  // What a flow delivers says nothing of the network where nobody has time to send.
  const bool is_starved = std::ranges::count(findings, Cause::StarvedDaemon, &Finding::cause) != 0;
  if (!evidence.is_exposed() || is_starved) return;
  std::vector<SlowFlow> slow;
  for (const NodeFacts& node : evidence.after.nodes) {
    if (const NodeFacts* earlier = evidence.earlier(node)) add_slow_flows(node, *earlier, slow);
  }
  if (slow.empty()) return;
  const SlowFlow& worst = *std::ranges::min_element(slow, {}, &SlowFlow::share);
  const NodeFacts& node = *worst.node;
  const uint64_t replaced_ago_ns = find_flow(node, worst.link, worst.flow)->replaced_ago_ns;
  Finding finding{Cause::SlowFlow, {}, {}, evidence.exposed_seconds, node.node, {}};
  finding.text = fmt::format(
      "Flow {} of I/O loop {} from {} to {} over {} delivers {}, most of its siblings {}{}{}{}",
      worst.flow.second, worst.flow.first, node.node, worst.link.first, worst.link.second,
      format_rate(worst.rate), format_rate(worst.usual),
      replaced_ago_ns == 0 ? ""
                           : fmt::format("; it was opened again {} ago, on another port",
                                         format_time(to_seconds(replaced_ago_ns))),
      losses_of(worst),
      slow.size() == 1 ? "" : fmt::format("; {} more flows of the job are slow", slow.size() - 1));
  finding.advice =
      "it gets fewer chunks than the others, and is opened again on another port if it stays slow";
  findings.push_back(std::move(finding));
}

void find_slow_rail(const Evidence& evidence, Findings& findings) {
  if (!evidence.is_exposed() || evidence.after.nodes.size() < 2) return;
  for (const NodeFacts& node : evidence.after.nodes) {
    std::vector<double> others, others_before;
    for (const NodeFacts& other : evidence.after.nodes) {
      const NodeFacts* earlier = evidence.earlier(other);
      if (&other == &node || earlier == nullptr) continue;
      if (const double capacity = rail_capacity(other); capacity > 0) others.push_back(capacity);
      if (const double capacity = rail_capacity(*earlier); capacity > 0)
        others_before.push_back(capacity);
    }
    const NodeFacts* earlier = evidence.earlier(node);
    const double own = rail_capacity(node);
    const double own_before = earlier == nullptr ? 0 : rail_capacity(*earlier);
    if (own == 0 || own_before == 0 || own >= kSlowShare * median(others) ||
        own_before >= kSlowShare * median(others_before)) {
      continue;
    }
    Finding finding{Cause::SlowRail, {}, {}, evidence.exposed_seconds, node.node, {}};
    finding.text = fmt::format(
        "The rails of {} ({}) deliver {}, those of the other nodes {}: it sets the pace of all",
        node.node, fmt::join(node.rails, ", "), format_rate(own), format_rate(median(others)));
    finding.advice = fmt::format(
        "look at the link speed that {} has negotiated (ethtool), at a limit that its cloud or a "
        "traffic shaper sets, and at what else it sends",
        node.node);
    findings.push_back(std::move(finding));
  }
}

void find_competing_jobs(const Evidence& evidence, Findings& findings) {
  if (!evidence.is_exposed()) return;
  Moved most;
  for (const NodeFacts& node : evidence.after.nodes) {
    const NodeFacts* earlier = evidence.earlier(node);
    if (earlier == nullptr || node.job_bytes <= earlier->job_bytes ||
        node.other_jobs_bytes <= earlier->other_jobs_bytes) {
      continue;
    }
    const Moved moved{&node, static_cast<double>(node.job_bytes - earlier->job_bytes),
                      static_cast<double>(node.other_jobs_bytes - earlier->other_jobs_bytes)};
    if (moved.others >= kCompetingShare * moved.own && moved.others > most.others) most = moved;
  }
  if (most.node == nullptr) return;
  Finding finding{Cause::CompetingJobs, {}, {}, evidence.exposed_seconds, most.node->node, {}};
  finding.text =
      fmt::format("Other jobs share the rails of {}: while this one reduced {}, they reduced {}",
                  most.node->node, format_amount(most.own), format_amount(most.others));
  finding.advice =
      "jobs share links in proportion to their weights (BRAID_JOB_WEIGHT); place them on other "
      "nodes where that is not enough";
  findings.push_back(std::move(finding));
}

void find_starved_daemons(const Evidence& evidence, Findings& findings) {
  if (!evidence.is_exposed()) return;
  std::vector<Starved> starved;
  for (const NodeFacts& node : evidence.after.nodes) {
    const NodeFacts* earlier = evidence.earlier(node);
    if (earlier == nullptr || node.at_ns <= earlier->at_ns) continue;
    const double window = to_seconds(node.at_ns - earlier->at_ns);
    const double ran = to_seconds(node.processor_ns - earlier->processor_ns);
    const double waited = to_seconds(node.processor_wait_ns - earlier->processor_wait_ns);
    const double exposed = evidence.exposed_seconds / evidence.step_seconds * window;
    if (waited < kStarvedShare * (ran + waited) || waited < kStarvedOfExposed * exposed) continue;
    starved.push_back({node.node, window, ran, waited});
  }
  if (starved.empty()) return;
  std::ranges::stable_sort(starved, std::ranges::greater(), &Starved::waited);
  std::vector<std::string> others;
  for (size_t i = 1; i < starved.size(); ++i) others.push_back(starved[i].node);
  const Starved& worst = starved.front();
  Finding finding{Cause::StarvedDaemon, {}, {}, evidence.exposed_seconds, worst.node, {}};
  finding.text = fmt::format(
      "braidd on {} waits for a processor: of {} its threads ran for {} and waited for {}{}{}",
      worst.node, format_time(worst.window), format_time(worst.ran), format_time(worst.waited),
      others.empty() ? "" : "; so do those on ", fmt::join(others, ", "));
  finding.advice = fmt::format(
      "leave it a core on {} (CPUAffinity, taskset for the trainers, fewer data loader workers), "
      "or let the service go first (Nice=-10 in a drop-in)",
      worst.node);
  findings.push_back(std::move(finding));
}

}  // namespace braid
