// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>

#include "bench/delay_line/packets.h"

namespace braid::delay_line {
namespace {

constexpr size_t kIpAt = sizeof(OffloadHeader) + sizeof(ether_header);
constexpr size_t kTcpAt = kIpAt + sizeof(iphdr);
constexpr size_t kTcpOptionsBytes = 12;
constexpr size_t kPayloadAt = kTcpAt + sizeof(tcphdr) + kTcpOptionsBytes;
constexpr uint16_t kPacketBytes = 1448;
constexpr uint32_t kSequence = 0xffffff00;  // it wraps within the frame

template <typename T>
T read(std::span<const std::byte> frame, size_t at) {
  T value;
  std::memcpy(&value, frame.data() + at, sizeof(T));
  return value;
}

// A segment with CWR, ECE, PSH and FIN; byte i of its payload is i mod 251.
std::vector<std::byte> segment(size_t payload_bytes) {
  std::vector<std::byte> frame(kPayloadAt + payload_bytes);
  OffloadHeader offload;
  offload.flags = 1;
  offload.segment_kind = kTcpOverIpv4 | kWithEcn;
  offload.packet_bytes = kPacketBytes;
  std::memcpy(frame.data(), &offload, sizeof(offload));
  ether_header ethernet{};
  ethernet.ether_type = htons(ETHERTYPE_IP);
  std::memcpy(frame.data() + sizeof(offload), &ethernet, sizeof(ethernet));
  iphdr ip{};
  ip.ihl = sizeof(iphdr) / 4;
  ip.version = 4;
  ip.tot_len = htons(static_cast<uint16_t>(frame.size() - kIpAt));
  ip.id = htons(7);
  ip.protocol = IPPROTO_TCP;
  ip.saddr = htonl(0x0a4d0001);
  ip.daddr = htonl(0x0a4d0002);
  std::memcpy(frame.data() + kIpAt, &ip, sizeof(ip));
  tcphdr tcp{};
  tcp.seq = htonl(kSequence);
  tcp.doff = (sizeof(tcphdr) + kTcpOptionsBytes) / 4;
  tcp.psh = tcp.fin = tcp.ack = 1;
  tcp.res2 = 3;
  std::memcpy(frame.data() + kTcpAt, &tcp, sizeof(tcp));
  for (size_t i = 0; i < payload_bytes; ++i) {
    frame[kPayloadAt + i] = static_cast<std::byte>(i % 251);
  }
  return frame;
}

std::vector<std::byte> cut(const std::vector<std::byte>& frame, PacketRange range) {
  std::vector<std::byte> out(frame.size());
  out.resize(delay_line::cut(frame, range, out));
  return out;
}

// The ones' complement sum over big-endian words, as RFC 1071 has it: 0xffff where it is right.
uint32_t checksum(std::span<const std::byte> bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) sum += ntohs(read<uint16_t>(bytes, i));
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

TEST(DelayLinePackets, AFrameHasAsManyPacketsAsAWireWouldCarry) {
  EXPECT_EQ(packets_of(segment(kPacketBytes)), 1u);
  EXPECT_EQ(packets_of(segment(kPacketBytes + 1)), 2u);
  EXPECT_EQ(packets_of(segment(44 * kPacketBytes)), 44u);
}

TEST(DelayLinePackets, WhatIsNoSegmentOfTcpOverIpv4IsOnePacket) {
  auto frame = segment(3 * kPacketBytes);
  for (const size_t bytes : {sizeof(OffloadHeader) + 14, kTcpAt, kPayloadAt}) {
    EXPECT_EQ(packets_of(Frame(frame).first(bytes)), 1u) << bytes;
  }
  frame[1] = std::byte{4};  // TCP over IPv6
  EXPECT_EQ(packets_of(frame), 1u);
  EXPECT_EQ(cut(frame, {0, 1}), frame);
}

TEST(DelayLinePackets, AllPacketsAreTheFrameItself) {
  const auto frame = segment(3 * kPacketBytes + 5);
  EXPECT_EQ(cut(frame, {0, 4}), frame);
}

TEST(DelayLinePackets, APartCarriesItsPlaceAndItsBytes) {
  const auto frame = segment(5 * kPacketBytes + 5);
  const auto part = cut(frame, {2, 4});
  ASSERT_EQ(part.size(), kPayloadAt + 2 * kPacketBytes);
  EXPECT_EQ(read<OffloadHeader>(part, 0).packet_bytes, kPacketBytes);
  const auto ip = read<iphdr>(part, kIpAt);
  EXPECT_EQ(ntohs(ip.tot_len), part.size() - kIpAt);
  EXPECT_EQ(ntohs(ip.id), 9);
  EXPECT_EQ(checksum(Frame(part).subspan(kIpAt, sizeof(iphdr))), 0xffffu);
  EXPECT_EQ(ntohl(read<tcphdr>(part, kTcpAt).seq), kSequence + 2 * kPacketBytes);
  EXPECT_EQ(std::memcmp(part.data() + kPayloadAt, frame.data() + kPayloadAt + 2 * kPacketBytes,
                        2 * kPacketBytes),
            0);
}

TEST(DelayLinePackets, ThePseudoHeaderIsSummedForTheRestOfTheChecksum) {
  const auto part = cut(segment(4 * kPacketBytes), {1, 3});
  const uint32_t tcp_bytes = static_cast<uint32_t>(part.size() - kTcpAt);
  uint32_t sum = 0x0a4d + 0x0001 + 0x0a4d + 0x0002 + IPPROTO_TCP + tcp_bytes;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  EXPECT_EQ(ntohs(read<tcphdr>(part, kTcpAt).check), sum);
}

TEST(DelayLinePackets, OnePacketNeedsNoMoreSegmentation) {
  const auto offload = read<OffloadHeader>(cut(segment(3 * kPacketBytes), {1, 2}), 0);
  EXPECT_EQ(offload.segment_kind, 0);
  EXPECT_EQ(offload.packet_bytes, 0);
  EXPECT_EQ(offload.flags, 1);
}

TEST(DelayLinePackets, FlagsStayWithThePacketTheyBelongTo) {
  const auto frame = segment(2 * kPacketBytes + 5);
  const auto first = read<tcphdr>(cut(frame, {0, 1}), kTcpAt);
  EXPECT_EQ(first.res2, 3);
  EXPECT_FALSE(first.fin || first.psh);
  const auto last_part = cut(frame, {2, 3});
  EXPECT_EQ(last_part.size(), kPayloadAt + 5);
  const auto last = read<tcphdr>(last_part, kTcpAt);
  EXPECT_EQ(last.res2, 1);
  EXPECT_TRUE(last.fin && last.psh && last.ack);
}

}  // namespace
}  // namespace braid::delay_line
