// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace braid {

// One rail's way to another node, where it may lose every packet of full size: some hop takes only
// smaller ones, and what would tell TCP of it (ICMP) is dropped. Connections open and small
// messages pass, and each chunk that does not fit a small packet is lost for ever. Recognised by
// this order of events, with no chunk of that size acknowledged in between: a flow is given up with
// a chunk on its way; a flow opens; a flow is given up again. Then the next connections use smaller
// segments. Not thread-safe.
class FullSizeLoss {
 public:
  // What opening a flow takes, and a probe, is less in each packet.
  static constexpr uint32_t kSmallBytes = 512;
  // Fits tunnels within tunnels; and what every IPv4 host must take.
  static constexpr int kSegmentBytes = 1200;
  static constexpr int kSegmentBytesLeast = 536;

  // The TCP segment size for the rail's next connections; 0: what its MTU allows.
  int segment_bytes() const { return segment_bytes_; }
  // It was recognised, and even the smallest segments did not help.
  bool is_hopeless() const { return is_hopeless_; }

  void on_flow_open() { has_opened_since_ = stuck_bytes_ != 0; }
  // A chunk of so many bytes.
  void on_acknowledged(uint32_t bytes);
  // A flow is given up; `bytes` are those of the largest chunk on its way. True: packets of full
  // size are lost, and segment_bytes() has changed or is_hopeless().
  bool on_given_up(uint32_t bytes);

 private:
  uint32_t stuck_bytes_ = 0;  // of a chunk that got stuck, and none as large has passed since
  bool has_opened_since_ = false;
  int segment_bytes_ = 0;
  bool is_hopeless_ = false;
};

}  // namespace braid
