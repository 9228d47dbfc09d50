# SPDX-License-Identifier: Apache-2.0
"""Trains a small model over braid, and says at the end whether all ranks have the same one: a cluster's first job."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("gloo" if device.type == "cpu" else "nccl")  # BRAID_ENABLE=1: it is braid's
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    layers = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)).to(device)
    model = DistributedDataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(int(os.environ.get("STEPS", "100"))):
        inputs = torch.randn(32, 64, device=device)
        loss = (model(inputs) - inputs.sum(dim=1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    own = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    all_models = [torch.empty_like(own) for _ in range(ranks)]
    dist.all_gather(all_models, own)
    if not all(torch.equal(own, other) for other in all_models):
        raise SystemExit(f"rank {rank}: the ranks' models differ")
    print(f"rank {rank} of {ranks}: all models are the same; over {dist.get_backend()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
