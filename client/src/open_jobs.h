// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace braid::client {

class Job;

// The jobs that this process has open. When the process ends by exit(), or by a return from main(),
// those that are left over are left in order: to the other ranks anything else would be a death,
// which fails their job although nobody may need this rank any more. Any thread. A forked child has
// a list of its own.
void add_open_job(Job& job);
// Afterwards the end of the process does not touch the job. If it ends at this moment: waits.
void remove_open_job(Job& job);

}  // namespace braid::client
