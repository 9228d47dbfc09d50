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
       "Payload of chunks to (sent) and from (received) another node, including what was sent "
       "again."},
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
       "Flows among these that died or could not be opened; each is opened again."},
      {Metric::LinkFlowReplacements,
       "braid_link_flow_replacements_total",
       true,
       {"peer", "rail"},
       {},
       "Flows among these that were opened again because they stayed slow."},
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
  };
}

std::vector<MetricInfo> link_load_infos() {
  return {
      {Metric::LinkUnacknowledged,
       "braid_link_unacknowledged_bytes",
       false,
       {"peer", "rail"},
       {},
       "What is on its way of the windows of all flows."},
      {Metric::LinkOldest,
       "braid_link_oldest_unacknowledged_seconds",
       false,
       {"peer", "rail"},
       {},
       "How long ago the oldest chunk was sent that is not acknowledged; 0: nothing is on its "
       "way."},
      {Metric::LinkSlowestFlow,
       "braid_link_slowest_flow_bytes_per_second",
       false,
       {"peer", "rail"},
       {},
       "Rate at which the slowest flow delivers; while the link carries so much that rates are "
       "known."},
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
