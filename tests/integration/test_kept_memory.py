# SPDX-License-Identifier: Apache-2.0
"""What a trainer keeps of the daemon's memory after its jobs holds no pages."""

import pytest
from real_cluster import needs_daemons
from second_user import GROUP_SETTING, needs_nobody, start_neighbour, way_opened

pytestmark = [needs_daemons, needs_nobody, pytest.mark.sanitized]

MIB = 1 << 20
# Job after job, of each of which it keeps the results, by a descriptor and by a mapping, and the rings.
KEEP = """
import ctypes, mmap

def descriptor_of(name):
    for fd in os.listdir("/proc/self/fd"):
        path = f"/proc/self/fd/{fd}"
        if os.path.exists(path) and name in os.readlink(path) and int(fd) not in (*kept, *rings):
            return os.dup(int(fd))

def memory_of(fds):
    return [os.fstat(fd).st_blocks * 512 for fd in fds]

kept, rings, mappings, before = [], [], [], []
for i in range(10):
    job = open_job(f"job {i}", arena_bytes=4 * ARGUMENT)
    sum_of(job, ARGUMENT // 4)
    kept.append(descriptor_of("braid-result"))
    rings.append(descriptor_of("braid-rings"))
    mappings.append(mmap.mmap(kept[-1], ARGUMENT, prot=mmap.PROT_READ))
    before += memory_of(kept[-1:])
    job.close()
end = time.monotonic() + 60  # the daemon's other threads have their time
while max(memory_of(kept)) > 0 and time.monotonic() < end:
    time.sleep(0.01)
libc = ctypes.CDLL(None, use_errno=True)
PUNCH_HOLE, KEEP_SIZE = 2, 1
punched = [libc.fallocate(fd, PUNCH_HOLE | KEEP_SIZE, ctypes.c_long(0), ctypes.c_long(4096)) for fd in rings]
report(before=before, after=memory_of(kept), punched=punched)
"""


def test_who_keeps_results_of_job_after_job_keeps_no_memory_of_the_daemons(cluster_of):
    cluster = cluster_of(1, GROUP_SETTING, "client.user_result_bytes_max=64MiB")
    with way_opened(cluster.nodes[0].socket):
        told = start_neighbour(cluster, KEEP, 16 * MIB).result()
    assert len(told["before"]) == 10
    assert min(told["before"]) >= 16 * MIB
    assert max(told["after"]) == 0, told
    assert told["punched"] == [-1] * 10, "a page that is taken out would be made anew by the daemon"
