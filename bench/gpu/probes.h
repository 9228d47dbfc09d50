// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "bench/gpu/gpu.h"

namespace braid::gpu_probe {

// Takes one row; its "test" names what was measured.
using Say = std::function<void(const nlohmann::json&)>;

// Each asks one thing that braid's GPU path relies on, and says rows. Units are in the names of the
// fields. Main thread.

// What the GPU and its driver say of themselves.
Status probe_device(const Gpu& gpu, const Say& say);
// What the context of a process costs in GPU memory. `program` is this program, whose command
// "hold" keeps one.
Status probe_context_memory(const Gpu& gpu, const Say& say, const std::string& program);
// What it costs to register host memory, by kind of page, and what copies gain by it.
Status probe_registration(const Gpu& gpu, const Say& say);
// Rates of copies, by size, one way and both ways at once.
Status probe_copies(const Gpu& gpu, const Say& say);
// How long a word takes between GPU and host, and what the calls cost.
Status probe_words(const Gpu& gpu, const Say& say);
// How long the driver takes to call a function of the host in stream order.
Status probe_host_functions(const Gpu& gpu, const Say& say);
// Streams that wait for a word that only the host writes: whether copies on other streams go on.
Status probe_blocked_streams(const Gpu& gpu, const Say& say);
// What other threads can still call while one stream waits and one thread frees or synchronizes.
// Ends the process if a store by the host does not let all go on: nothing could end the threads.
Status probe_holders(const Gpu& gpu, const Say& say);
// How many calls fit into the queue of a stream that waits.
Status probe_queue_depth(const Gpu& gpu, const Say& say);
// GPU memory that another process imports: by a descriptor, and as a dma-buf.
Status probe_export(const Gpu& gpu, const Say& say, const std::string& program);

// The other process' part of probe_export: imports the memory of descriptor `fd` and copies it.
Status import_memory(const Gpu& gpu, const Say& say, int fd, size_t bytes);

}  // namespace braid::gpu_probe
