# SPDX-License-Identifier: Apache-2.0
"""Weights that are updated one step late, while something dies: they stay exact, or the job ends with a name."""

import pytest
from real_cluster import end_running, expect_to_go_on, needs_daemons, until, wait_until_running
from test_failures import kill_a_daemon_of, kill_trainers_of
from test_flows import SETTINGS, data_connections, kill_connection, open_flows

pytestmark = [needs_daemons, pytest.mark.sanitized]

# Each step is waited for when the next gradients are ready, as a delayed optimizer does. All numbers are whole, and
# come back to where they were after each second update: so the weights are exact for ever. With estimates there is one
# before each update, of the same gradients.
UPDATE_FOREVER = """
from braid import Update, UpdateAction

estimates = ARGUMENT == "estimates"
job = open_job()
counts = [300_000, 7, 40_000]
handles = job.register([TensorSpec(f"layer{i}", DType.FLOAT32, c, backward_order=i, planned=True, state_slots=1)
                        for i, c in enumerate(counts)])
weights = [np.arange(c, dtype=np.float32) % 1000 for c in counts]
own = [(np.arange(c, dtype=np.float32) % 7) + RANK for c in counts]
total = [WORLD * (np.arange(c, dtype=np.float32) % 7) + WORLD * (WORLD - 1) // 2 for c in counts]
for ticket in [job.submit(h, 0, w, update=Update(action=UpdateAction.LOAD)) for h, w in zip(handles, weights)]:
    ended(job, ticket)
step, late = 0, []
end = time.monotonic() + 600
while time.monotonic() < end:
    step += 1
    count = (step + 1) // 2 if estimates else step
    sign = 1 if count % 2 else -1
    action = UpdateAction.ESTIMATE if estimates and step % 2 else UpdateAction.APPLY
    gradients = [sign * g for g in own]
    for ticket, expected in late:
        if not np.array_equal(np.frombuffer(ended(job, ticket), np.float32), expected):
            report(wrong=step)
            sys.exit(4)
    update = Update(action=action, count=count, learning_rate=1)
    late = [(job.submit(h, step, g, update=update), w - t if sign > 0 else w)
            for h, g, w, t in zip(handles, gradients, weights, total)]
    if step == 2:
        say("RUNNING")
"""


@pytest.mark.parametrize("way", ["updates", "estimates"])
def test_late_updates_survive_the_death_of_flows(cluster_of, way):
    cluster = cluster_of(3, *SETTINGS)
    trainers = cluster.start(UPDATE_FOREVER, argument=way)
    wait_until_running(trainers)
    node = cluster.nodes[1]
    full = open_flows(node)
    if not kill_connection(node, data_connections(node)[0]):
        pytest.skip("this kernel cannot destroy connections (CONFIG_INET_DIAG_DESTROY)")
    for _ in range(4):
        until(lambda: open_flows(node) >= full, "the flow is open again")
        kill_connection(node, data_connections(node)[-1])
        expect_to_go_on(trainers)
    assert cluster.total("braid_flow_failures_total") >= 4
    end_running(trainers)


@pytest.mark.parametrize("placed", [[0, 1, 2], [0, 0, 1]], ids=str)
def test_a_killed_trainer_is_named_and_nothing_is_kept(cluster_of, placed):
    # A tuner that has time opens more flows, which stay.
    kill_trainers_of(cluster_of(3, "tune.mode=off"), UPDATE_FOREVER, placed)


def test_a_killed_daemon_is_named(cluster_of):
    kill_a_daemon_of(cluster_of(3), UPDATE_FOREVER, victim=1)
