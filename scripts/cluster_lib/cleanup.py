# SPDX-License-Identifier: Apache-2.0
"""Taking a cluster down, by the tool itself, its reaper, or the next start."""

import os
import shutil

from . import names, network, processes, state
from .errors import ClusterError


def remove(cluster_id: str) -> list[str]:
    """Ends what is left of a cluster and deletes it; returns what could not be deleted.

    Any number of processes may do this for the same cluster at the same time.
    """

    def remaining() -> list[int]:
        spaces = [
            os.path.join(names.NAMESPACES_DIR, name) for name in names.namespaces_of(cluster_id)
        ]
        found = set(processes.members(cluster_id))
        return sorted(found | set(processes.inhabitants(spaces) if spaces else []))

    processes.terminate(remaining)
    directory = names.run_directory(cluster_id)
    left = network.delete_namespaces(cluster_id) if names.namespaces_of(cluster_id) else []
    try:
        _keep_logs(directory)
    except OSError as error:
        left.append(f"the logs, which could not be copied ({error})")
    shutil.rmtree(directory, ignore_errors=True)
    return left + ([directory] if os.path.exists(directory) else [])


def _keep_logs(directory: str) -> None:
    """Copies the daemons' logs to where --keep-logs wanted them."""
    try:
        cluster = state.load(directory)
    except ClusterError:
        return  # it ended before it had anything to keep
    if cluster.keep_logs is None:
        return
    os.makedirs(cluster.keep_logs, exist_ok=True)
    for node in cluster.nodes:
        if os.path.exists(node.log):
            shutil.copyfile(node.log, os.path.join(cluster.keep_logs, f"{node.name}.log"))


def sweep() -> None:
    """Removes the clusters whose tool and reaper were both killed. Call it under names.lock()."""
    ids = set(names.all_run_directories())
    if os.geteuid() == 0:
        ids |= {names.id_of_namespace(name) for name in names.all_namespaces()} - {None}
    for cluster_id in ids:
        if not names.owner_lives(cluster_id):
            remove(cluster_id)
