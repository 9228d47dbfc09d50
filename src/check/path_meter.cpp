// SPDX-License-Identifier: Apache-2.0
#include "check/path_meter.h"

#include <algorithm>
#include <utility>

namespace braid {
namespace {

constexpr size_t kReportsMax = 1024;
// Beyond what the windows take, so that none runs dry.
constexpr uint32_t kChunksToSpare = 2;

uint64_t failures_of(const std::vector<FlowStatus>& flows) {
  uint64_t failures = 0;
  for (const FlowStatus& flow : flows) failures += flow.failures;
  return failures;
}

void note_rates(const std::vector<FlowStatus>& flows, PathRate& rate) {
  std::vector<double> rates;
  for (const FlowStatus& flow : flows) {
    if (flow.bytes_per_second > 0) rates.push_back(flow.bytes_per_second);
  }
  if (rates.empty()) return;
  std::ranges::sort(rates);
  rate.slowest_flow = rates.front();
  rate.median_flow = rates[rates.size() / 2];
}

}  // namespace

PathMeter::PathMeter(Loop& control_loop, const std::vector<IoLoop>& io_loops, Transport& transport,
                     WorkThread& worker, Options options)
    : transport_(transport),
      worker_(worker),
      options_(options),
      reports_(control_loop, kReportsMax,
               [this](PathSender::Report& report) { on_report(report); }) {
  for (size_t i = 0; i < io_loops.size(); ++i)
    senders_.push_back(
        std::make_unique<PathSender>(*io_loops[i].loop, transport.links(i), reports_));
}

void PathMeter::measure(Wish wish, Measured measured) {
  if (waiting_.size() >= kWaitingMax) {
    PathRate refused;
    refused.error = "too many others check this node at the same time: check again later";
    return measured(refused);
  }
  wish.milliseconds = std::clamp(wish.milliseconds, 1U, kMillisecondsMax);
  waiting_.push_back({std::move(wish), std::move(measured)});
  if (waiting_.size() == 1) begin_next();
}

void PathMeter::begin_next() {
  running_ = {};
  running_.number = ++numbers_;
  look_at_flows([this](const std::vector<FlowStatus>& flows) {
    running_.failures_before = failures_of(flows);
    look_at_segments([this](TcpSegmentsSent sent) {
      running_.before = sent;
      send();
    });
  });
}

void PathMeter::look_at_segments(std::function<void(TcpSegmentsSent)> told) {
  auto sent = std::make_shared<TcpSegmentsSent>();
  auto done = lifetime_.guard([sent, told = std::move(told)] { told(*sent); });
  // Where too much else is to be done, segments stay unknown.
  if (!worker_.run([sent, addresses = wish().addresses] { *sent = tcp_segments_sent(addresses); },
                   done))
    done();
}

// Tells of the flows that this node sends to the peer on.
void PathMeter::look_at_flows(std::function<void(std::vector<FlowStatus>)> told) {
  transport_.query_flows(
      lifetime_.guard([this, told = std::move(told)](std::vector<FlowStatus> flows) {
        std::erase_if(flows, [this](const FlowStatus& flow) {
          return !flow.outgoing || flow.peer != wish().peer.name;
        });
        told(std::move(flows));
      }));
}

void PathMeter::send() {
  const Wish& wanted = wish();
  const size_t loops = wanted.is_one_flow ? 1 : senders_.size();
  const uint32_t flows = wanted.is_one_flow ? 1 : options_.flows_per_link;
  PathSender::Order order;
  order.number = running_.number;
  order.peer = wanted.peer.id;
  order.flows = wanted.is_one_flow ? 1 : 0;
  order.milliseconds = wanted.milliseconds;
  order.chunk_bytes = options_.chunk_bytes;
  order.chunks_max = flows * (options_.window_bytes / options_.chunk_bytes + kChunksToSpare);
  running_.rate.flows = flows * static_cast<uint32_t>(loops);
  running_.reports_awaited = loops;
  for (size_t i = 0; i < loops; ++i) senders_[i]->begin(order);
}

void PathMeter::on_report(const PathSender::Report& report) {
  if (report.number != running_.number || running_.reports_awaited == 0) return;
  PathRate& rate = running_.rate;
  if (!report.had_link) rate.error = fmt::format("the link to node '{}' is lost", wish().peer.name);
  rate.bytes += report.bytes;
  rate.nanoseconds = std::max(rate.nanoseconds, report.nanoseconds);
  if (--running_.reports_awaited != 0) return;
  look_at_segments([this](TcpSegmentsSent sent) {
    // Connections that were closed meanwhile took their counts with them.
    if (sent.segments >= running_.before.segments && sent.resent >= running_.before.resent) {
      running_.rate.segments = sent.segments - running_.before.segments;
      running_.rate.segments_resent = sent.resent - running_.before.resent;
    }
    look_at_flows([this](const std::vector<FlowStatus>& flows) { finish(flows); });
  });
}

void PathMeter::finish(const std::vector<FlowStatus>& flows) {
  PathRate& rate = running_.rate;
  note_rates(flows, rate);
  if (const uint64_t failures = failures_of(flows); failures > running_.failures_before) {
    rate.flows_failed = static_cast<uint32_t>(failures - running_.failures_before);
    // The one that failed last.
    const auto last = std::ranges::min_element(flows, {}, [](const FlowStatus& flow) {
      return flow.failed_ago_ns == 0 ? UINT64_MAX : flow.failed_ago_ns;
    });
    rate.flow_error = last->error;
  }
  const Waiting done = std::move(waiting_.front());
  waiting_.pop_front();
  const PathRate result = rate;
  if (!waiting_.empty()) begin_next();
  done.measured(result);
}

}  // namespace braid
