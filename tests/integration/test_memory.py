# SPDX-License-Identifier: Apache-2.0
"""What jobs hold of a node's memory, and that what they no longer use goes back."""

from real_cluster import needs_daemons, until, wait_until_running
from second_user import GROUP_SETTING, needs_nobody, start_neighbour, way_opened
from test_operations import braidctl, metrics

pytestmark = needs_daemons

MIB = 1 << 20
# Longer than two rounds of 5 s, on the slowest machine.
GOING_BACK_S = 120
# What an idle memory keeps (16 MiB), and a block that is used in part.
STAYS_BYTES = 20 * MIB
COUNT = 25_000_000  # 100 MB
LARGE_ONCE = f"""
job = open_job()
tensor = dynamic(job)
ended(job, job.submit(tensor, 0, np.ones({COUNT}, np.float32)))
say("RUNNING")
for step in range(1, 1_000_000):
    ended(job, job.submit(tensor, step, np.ones(10, np.float32)))
    time.sleep(0.01)
"""
# The result of a job of one's own, which may be read and nothing else.
OPEN_FOR_WRITING = """
job = open_job('mine')
total = sum_of(job, 100_000)
paths = [f'/proc/self/fd/{fd}' for fd in os.listdir('/proc/self/fd') if int(fd) > 2]
results = [p for p in paths if os.path.exists(p) and 'braid-result' in os.readlink(p)]
errors = []
for path in results:
    for flags in (os.O_RDWR, os.O_WRONLY, os.O_RDONLY):
        try:
            os.close(os.open(path, flags))
            errors.append('opened')
        except OSError as error:
            errors.append(error.strerror)
    try:
        os.pwrite(int(path.rpartition('/')[2]), b'x', 0)
        errors.append('written')
    except OSError as error:
        errors.append(error.strerror)
report(total=total, errors=errors)
"""


def test_memory_for_results_and_arenas_goes_back_and_status_says_so(cluster_of):
    cluster = cluster_of(1)
    (node,) = cluster.nodes
    trainers = cluster.start(LARGE_ONCE, nodes=[0, 0])
    wait_until_running(trainers)

    def job() -> dict:
        return node.status()["jobs"][0]

    def is_small() -> bool:
        now = job()
        ranks = [rank["arena_memory_bytes"] for rank in now["local_ranks"]]
        assert now["arena_memory_bytes"] == sum(ranks) and len(ranks) == 2
        assert now["result_memory_used_bytes"] <= now["result_memory_bytes"]
        return max(now["result_memory_bytes"], *ranks) <= STAYS_BYTES

    until(is_small, "what the large sum took has gone back", GOING_BACK_S)
    now = job()
    assert now["result_memory_bytes"] > 0 and now["arena_memory_bytes"] > 0
    assert metrics(node)["braid_result_memory_bytes"] <= STAYS_BYTES
    assert "in input arenas" in braidctl(node.socket, "status").stdout
    assert "memory for results" in braidctl(node.socket, "status").stdout


@needs_nobody
def test_another_user_reads_results_and_no_more(cluster_of):
    cluster = cluster_of(1, GROUP_SETTING)
    with way_opened(cluster.nodes[0].socket):
        result = start_neighbour(cluster, OPEN_FOR_WRITING).result()
    assert result["total"] == 1
    denied = ["Permission denied"] * 3 + ["Bad file descriptor"]
    assert result["errors"] == denied
