// SPDX-License-Identifier: Apache-2.0
#include "metrics/all_families.h"

namespace braid {
namespace {

std::vector<MetricInfo> link_traffic_infos() {
  return {
      {Metric::LinkBytes,
       "braid_link_bytes_total",
       true,
       {"peer", "rail", "direction"},
       {},
       "Payload of chunks to (sent) and from (received) another node, including chunks that were "
       "sent again."},
      {Metric::LinkFlows,
       "braid_link_flows",
       false,
       {"peer", "rail", "state"},
       {},
       "Flows that this node sends on to another one, by state: open, opening, failed."},
      {Metric::LinkFlowFailures,
       "braid_link_flow_failures_total",
       true,
       {"peer", "rail"},
       {},
       "Flows to another node that died or could not be opened; each is opened again."},
      {Metric::LinkFlowReplacements,
       "braid_link_flow_replacements_total",
       true,
       {"peer", "rail"},
       {},
       "Flows to another node that were opened again because they stayed slow."},
      {Metric::LinkChunksReturned,
       "braid_link_chunks_returned_total",
       true,
       {"peer", "rail"},
       {},
       "Chunks that were not acknowledged when their flow died: other flows carry them again."},
      {Metric::LinkChunksOverdue,
       "braid_link_chunks_overdue_total",
       true,
       {"peer", "rail"},
       {},
       "Chunks that were not acknowledged in time, and were sent over another flow, too."},
      {Metric::LinkSegmentsResent,
       "braid_link_segments_resent_total",
       true,
       {"peer", "rail"},
       {},
       "Segments of native flows that TCP has sent again: lost packets."},
  };
}

std::vector<MetricInfo> link_load_infos() {
  return {
      {Metric::LinkUnacknowledged,
       "braid_link_unacknowledged_bytes",
       false,
       {"peer", "rail"},
       {},
       "Bytes on their way: the used part of all flows' windows."},
      {Metric::LinkOldest,
       "braid_link_oldest_unacknowledged_seconds",
       false,
       {"peer", "rail"},
       {},
       "Age of the oldest chunk that is not acknowledged; 0: nothing is on its way."},
      {Metric::LinkPathRoundTrip,
       "braid_link_path_round_trip_seconds",
       false,
       {"peer", "rail"},
       {},
       "The longest round trip of any native flow as TCP measures it, while the link carries "
       "something."},
      {Metric::LinkSlowestFlow,
       "braid_link_slowest_flow_bytes_per_second",
       false,
       {"peer", "rail"},
       {},
       "Rate of the slowest flow, while the link carries enough for rates to be known."},
      {Metric::LinkMedianFlow,
       "braid_link_median_flow_bytes_per_second",
       false,
       {"peer", "rail"},
       {},
       "The median of the rates of all flows."},
      {Metric::LinkQueued,
       "braid_link_queued_bytes",
       false,
       {"peer"},
       {},
       "Chunks that wait for a flow with room."},
  };
}

}  // namespace

std::vector<MetricInfo> link_infos() {
  std::vector<MetricInfo> all;
  for (const auto& infos : {link_traffic_infos(), link_load_infos()})
    all.insert(all.end(), infos.begin(), infos.end());
  return all;
}

}  // namespace braid
