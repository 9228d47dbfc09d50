# SPDX-License-Identifier: Apache-2.0
"""From options to a cluster that exists: names, addresses, directories, the network."""

import argparse
import os
import random

from . import cleanup, names, network, shaping, state
from .daemons import CONTROL_PORT, METRICS_PORT
from .errors import ClusterError, NotPermitted
from .delay_line import DelayLine
from .options import say
from .state import LOOPBACK, NAMESPACES, Cluster, Node

# Below the range that connections get their ports from, so nothing takes it before COMMAND does.
_MASTER_PORTS = (20_000, 32_000)
_SOCKET_PATH_BYTES_MAX = 107


def build(
    options: argparse.Namespace, cluster_id: str, delay_line: DelayLine | None = None
) -> Cluster:
    """Sweeps dead clusters away, then makes run directory and network of this one."""
    shaped = shaping.is_wanted(options.nic_mbit, options.flow_mbit or [])
    with names.lock():
        cleanup.sweep()
        directory = names.run_directory(cluster_id)
        os.mkdir(directory, mode=0o700)
        if options.loopback:
            cluster = _plan(options, cluster_id, directory, LOOPBACK)
        else:
            cluster = _plan(options, cluster_id, directory, NAMESPACES)
            try:
                network.create(cluster, None if delay_line is None else delay_line.start)
            except NotPermitted as error:
                if shaped or delay_line is not None or options.ipv6:
                    raise ClusterError(
                        f"{error}; without them the network cannot be shaped or delayed, and has no IPv6"
                    ) from None
                network.delete_namespaces(cluster_id)
                say(f"WARNING: {error}; going on with --loopback: all nodes on 127.0.0.x, unshaped")
                cluster = _plan(options, cluster_id, directory, LOOPBACK)
        if shaped:
            shaping.apply(cluster, options.nic_mbit, options.flow_mbit or [])
        for node in cluster.nodes:
            os.mkdir(node.directory, mode=0o700)
        cluster.save()
    return cluster


def _plan(options: argparse.Namespace, cluster_id: str, directory: str, mode: str) -> Cluster:
    loopback = mode == LOOPBACK
    ports = [] if options.no_daemons else [CONTROL_PORT, METRICS_PORT]
    index = network.choose_index(_used_indexes(cluster_id, mode), ports, loopback)
    address = network.namespace_address_v6 if options.ipv6 else network.namespace_address
    if loopback:
        address = network.loopback_address
    nodes = []
    for i in range(options.nodes):
        own = os.path.join(directory, f"node{i}")
        nodes.append(
            Node(
                name=f"node{i}",
                index=i,
                address=address(index, i),
                interface="lo" if loopback else network.INTERFACE,
                namespace=None if loopback else names.namespace(cluster_id, f"n{i}"),
                directory=own,
                socket=os.path.join(own, "braidd.sock"),
                log=os.path.join(own, "braidd.log"),
            )
        )
    if len(os.fsencode(nodes[-1].socket)) > _SOCKET_PATH_BYTES_MAX:
        raise ClusterError(
            f"{nodes[-1].socket} is too long for a Unix socket ({_SOCKET_PATH_BYTES_MAX} bytes): "
            "set XDG_RUNTIME_DIR to a shorter path"
        )
    return Cluster(
        id=cluster_id,
        directory=directory,
        mode=mode,
        index=index,
        master_port=(
            network.free_port_on(nodes[0].address) if loopback else random.randrange(*_MASTER_PORTS)
        ),
        job=f"cluster-{cluster_id}",
        nodes=nodes,
        switch=None if loopback else names.namespace(cluster_id, "sw"),
        delay=options.delay,
        keep_logs=os.path.abspath(options.keep_logs) if options.keep_logs else None,
        ipv6=options.ipv6,
    )


def _used_indexes(cluster_id: str, mode: str) -> set[int]:
    used = set()
    for other in names.all_run_directories():
        if other != cluster_id:
            try:
                cluster = state.load(names.run_directory(other))
            except ClusterError:
                continue  # it is just going away
            if cluster.mode == mode:
                used.add(cluster.index)
    return used
