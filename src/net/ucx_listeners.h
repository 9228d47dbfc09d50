// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid {

// Every UCX worker on TCP listens on a port of its own, and UCX believes whatever comes in there:
// five well-chosen bytes after its magic number end the process (an assertion in UCX 1.13). A flow
// has one peer and one connection, so once that stands, nobody else has any business at the port.

// The number that the next descriptor of this process gets; -1 if there may be no more.
int lowest_free_descriptor();
// One more than the highest descriptor that is open.
int descriptors_end();

// The sockets among the descriptors from `from` up to `to` that listen for TCP connections.
std::vector<int> listening_tcp_sockets(int from, int to);

// Those of `sockets` whose port occurs in a worker's address.
std::vector<int> sockets_in_address(std::span<const int> sockets, std::span<const uint8_t> address);

// From now on the kernel drops what arrives at the listening socket, as if nobody listened.
// Connections that were accepted are not touched. Nothing happens to sockets that are gone.
void drop_strangers(int listening_socket);

}  // namespace braid
