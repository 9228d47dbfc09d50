// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace braid::delay_line {

// What stands in front of every frame of a TAP with IFF_VNET_HDR: struct virtio_net_hdr of
// linux/virtio_net.h, which is no C++.
struct OffloadHeader {
  uint8_t flags = 0;
  uint8_t segment_kind = 0;  // 0: the frame is one packet
  uint16_t headers_bytes = 0;
  uint16_t packet_bytes = 0;  // of payload in each packet but the last
  uint16_t checksum_start = 0;
  uint16_t checksum_offset = 0;
};
static_assert(sizeof(OffloadHeader) == 10);
inline constexpr uint8_t kTcpOverIpv4 = 1;
inline constexpr uint8_t kWithEcn = 0x80;  // a flag besides the kind

// An OffloadHeader, then the Ethernet frame. With segmentation offload it is one TCP segment of up
// to 64 KiB, which a wire would carry as many packets.
using Frame = std::span<const std::byte>;

inline constexpr size_t kFrameBytesMax = 68 * 1024;

// Places of packets in a frame, from `begin` to before `end`.
struct PacketRange {
  uint32_t begin = 0;
  uint32_t end = 0;

  bool operator==(const PacketRange&) const = default;
};

// How many packets of the wire the frame is. Only TCP over IPv4 is known to consist of several.
uint32_t packets_of(Frame frame);

// Makes a frame of some packets of `frame` in `out`, which has room for all of it, and returns its
// size. `range` is not empty and within packets_of(frame).
size_t cut(Frame frame, PacketRange range, std::span<std::byte> out);

}  // namespace braid::delay_line
