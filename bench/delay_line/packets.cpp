// SPDX-License-Identifier: Apache-2.0
#include "bench/delay_line/packets.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <arpa/inet.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>

#include "base/assert.h"

namespace braid::delay_line {
namespace {

constexpr size_t kEthernetAt = sizeof(OffloadHeader);
constexpr size_t kIpAt = kEthernetAt + sizeof(ether_header);

// Frames are not aligned.
template <typename T>
T read_at(Frame frame, size_t at) {
  T value;
  std::memcpy(&value, frame.data() + at, sizeof(T));
  return value;
}

template <typename T>
void write_at(std::span<std::byte> frame, size_t at, const T& value) {
  std::memcpy(frame.data() + at, &value, sizeof(T));
}

// Where a TCP segment's parts are.
struct Segment {
  size_t tcp_at = 0;
  size_t payload_at = 0;
  size_t payload_bytes = 0;
  size_t packet_bytes = 0;  // of payload in each packet but the last

  uint32_t packets() const {
    return static_cast<uint32_t>((payload_bytes + packet_bytes - 1) / packet_bytes);
  }
};

// Nothing if the frame is one packet, or of a kind that is not known here.
std::optional<Segment> segment_of(Frame frame) {
  if (frame.size() < kIpAt + sizeof(iphdr)) return std::nullopt;
  const auto offload = read_at<OffloadHeader>(frame, 0);
  const int kind = offload.segment_kind & ~kWithEcn;
  const auto ethernet = read_at<ether_header>(frame, kEthernetAt);
  if (kind != kTcpOverIpv4 || offload.packet_bytes == 0 ||
      ntohs(ethernet.ether_type) != ETHERTYPE_IP) {
    return std::nullopt;
  }
  Segment segment;
  segment.packet_bytes = offload.packet_bytes;
  segment.tcp_at = kIpAt + read_at<iphdr>(frame, kIpAt).ihl * size_t{4};
  if (frame.size() < segment.tcp_at + sizeof(tcphdr)) return std::nullopt;
  segment.payload_at = segment.tcp_at + read_at<tcphdr>(frame, segment.tcp_at).doff * size_t{4};
  if (frame.size() <= segment.payload_at) return std::nullopt;
  segment.payload_bytes = frame.size() - segment.payload_at;
  return segment;
}

// The ones' complement sum of the internet checksum, before it is folded.
uint32_t sum_of(Frame bytes) {
  uint32_t sum = 0;
  for (size_t at = 0; at + 1 < bytes.size(); at += 2) sum += read_at<uint16_t>(bytes, at);
  return sum;
}

uint16_t fold(uint32_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

// What the kernel leaves in a segment's checksum when its device is to do the rest.
uint16_t pseudo_header_sum(const iphdr& ip, size_t tcp_bytes) {
  const auto addresses = std::as_bytes(std::span(&ip, 1)).subspan(offsetof(iphdr, saddr));
  return fold(sum_of(addresses) + htons(IPPROTO_TCP) + htons(static_cast<uint16_t>(tcp_bytes)));
}

}  // namespace

uint32_t packets_of(Frame frame) {
  const auto segment = segment_of(frame);
  return segment ? segment->packets() : 1;
}

size_t cut(Frame frame, PacketRange range, std::span<std::byte> out) {
  const auto segment = segment_of(frame);
  const uint32_t packets = segment ? segment->packets() : 1;
  BRAID_ASSERT(range.begin < range.end && range.end <= packets && out.size() >= frame.size(),
               "a part that the frame does not have");
  if (range.end - range.begin == packets) {
    std::memcpy(out.data(), frame.data(), frame.size());
    return frame.size();
  }
  const size_t from = range.begin * segment->packet_bytes;
  const size_t bytes = std::min(range.end * segment->packet_bytes, segment->payload_bytes) - from;
  std::memcpy(out.data(), frame.data(), segment->payload_at);
  std::memcpy(out.data() + segment->payload_at, frame.data() + segment->payload_at + from, bytes);

  auto offload = read_at<OffloadHeader>(frame, 0);
  if (range.end - range.begin == 1) {
    offload.segment_kind = 0;
    offload.packet_bytes = 0;
  }
  write_at(out, 0, offload);

  auto ip = read_at<iphdr>(frame, kIpAt);
  ip.tot_len = htons(static_cast<uint16_t>(segment->payload_at - kIpAt + bytes));
  ip.id = htons(static_cast<uint16_t>(ntohs(ip.id) + range.begin));
  ip.check = 0;
  write_at(out, kIpAt, ip);
  const size_t ip_bytes = segment->tcp_at - kIpAt;
  ip.check = static_cast<uint16_t>(~fold(sum_of(out.subspan(kIpAt, ip_bytes))));
  write_at(out, kIpAt, ip);

  auto tcp = read_at<tcphdr>(frame, segment->tcp_at);
  tcp.seq = htonl(ntohl(tcp.seq) + static_cast<uint32_t>(from));
  if (range.begin > 0) tcp.res2 = tcp.res2 & 1;  // CWR belongs to the first packet
  if (range.end < packets) tcp.fin = tcp.psh = 0;
  tcp.check = pseudo_header_sum(ip, segment->payload_at - segment->tcp_at + bytes);
  write_at(out, segment->tcp_at, tcp);
  return segment->payload_at + bytes;
}

}  // namespace braid::delay_line
