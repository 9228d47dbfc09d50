// SPDX-License-Identifier: Apache-2.0
// What the library has counted.
#pragma once

namespace fake_cuda {

/// When the process ends, calls that wait end, and with REPORT=FOLDER the file FOLDER/PID.json is
/// written. It has the counts of fake_cuda_counts by name, and "threads": a list of {"id", "name",
/// "calls": {function: number}}.
void report_at_exit();

}  // namespace fake_cuda
