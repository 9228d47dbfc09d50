# SPDX-License-Identifier: Apache-2.0
"""Reports what the jobs of its process groups are called."""

import os
from datetime import timedelta

import torch.distributed as dist
from report import report
from torch.distributed.device_mesh import init_device_mesh

import braid.torch


def name_of(group: object) -> str:
    return group.engine.job.name


def main() -> None:
    del os.environ["BRAID_JOB"]  # the cluster's
    braid.torch.register()
    dist.init_process_group("braid", timeout=timedelta(seconds=120))
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    names = {"default": name_of(dist.group.WORLD), "tp": name_of(mesh.get_group("tp"))}
    names |= {"again": name_of(dist.new_group()), "twin": name_of(dist.new_group())}
    report(names=names)
    dist.destroy_process_group()


main()
