// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace braid {

// TCP_RTO_MIN_US and TCP_DELACK_MAX_US of linux/tcp.h, which older headers do not have.
inline constexpr int kTcpRtoMinOption = 45;
inline constexpr int kTcpDelackMaxOption = 46;

// The other side acknowledges a lone packet well before this side takes it for lost.
inline constexpr int kTcpAckDelayMaxUs = 5'000;
inline constexpr int kTcpRetransmissionMinUs = 20'000;

// Lets the TCP socket of a connection between daemons notice a loss within tens of milliseconds.
// That the last packets of a message are lost TCP learns from its timers alone: they wait for 200
// ms at least, as the other side may hold back an acknowledgement for long. The round trip and its
// variation are added as ever. Linux 6.15 and later; nothing happens on older ones.
void shorten_tcp_timers(int socket);

}  // namespace braid
