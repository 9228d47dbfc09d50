# SPDX-License-Identifier: Apache-2.0
"""Trains the CNN of fashion_mnist.py with K-FAC beside an optimizer of PyTorch. Three lines are K-FAC's.

Start one process per rank with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set, as braid-run does:

    braid-run --nproc-per-node 4 examples/kfac.py --mode spd

--mode none leaves K-FAC out. --output FILE keeps what rank 0 has measured, as JSON.
"""

import argparse
import json
import time

import torch
import torch.distributed as dist
from fashion_mnist import accuracy, load, make_model
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from braid.torch.kfac import KFAC  # the first line

OPTIMIZERS = {
    "sgd": lambda parameters, lr: torch.optim.SGD(parameters, lr, momentum=0.9),
    "adamw": torch.optim.AdamW,
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist",
                        help="folder with the four idx files of Fashion-MNIST (%(default)s)")
    parser.add_argument("--output", help="file for measurements")
    parser.add_argument("--mode", choices=("none", "spd", "mpd", "d", "dp"), default="spd")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="sgd")
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--damping", type=float, default=0.01)
    parser.add_argument("--inverse-every", type=int, default=10, help="steps between two inverses (%(default)s)")
    parser.add_argument("--factor-every", type=int, default=1, help="steps between two factors (%(default)s)")
    parser.add_argument("--method", choices=("eigen", "inverse"), default="eigen")
    parser.add_argument("--bf16-factors", action="store_true", help="factors travel as bfloat16")
    parser.add_argument("--steps", type=int, default=200, help="training steps (%(default)s)")
    parser.add_argument("--batch-size", type=int, default=32, help="images per rank and step (%(default)s)")
    parser.add_argument("--hidden", type=int, default=256, help="width of the hidden layer (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def make_kfac(model, arguments):
    if arguments.mode == "none":
        return None
    return KFAC(  # the second line
        model, arguments.mode, damping=arguments.damping, lr=arguments.learning_rate,
        compute_method=arguments.method, factor_update_steps=arguments.factor_every,
        inv_update_steps=arguments.inverse_every,
        factor_dtype=torch.bfloat16 if arguments.bf16_factors else None,
    )  # fmt: skip


def train(model, loader, sampler, steps, optimizer, kfac):
    """Returns the losses, averaged over the ranks, and the seconds of each step."""
    losses, seconds = [], []
    epoch = 0
    while len(losses) < steps:
        sampler.set_epoch(epoch)
        epoch += 1
        for images, labels in loader:
            start = time.perf_counter()
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            if kfac is not None:
                kfac.step()  # the third line
            optimizer.step()
            seconds.append(time.perf_counter() - start)

            mean = loss.detach()
            dist.all_reduce(mean, dist.ReduceOp.AVG)
            losses.append(mean.item())
            if dist.get_rank() == 0 and len(losses) % 25 == 0:
                print(f"step {len(losses):4d}  loss {losses[-1]:.4f}  {seconds[-1] * 1e3:.0f} ms", flush=True)
            if len(losses) == steps:
                break
    return losses, seconds


def main():
    arguments = parse_arguments()
    dist.init_process_group("gloo")

    training_data = load(arguments.data, "train")
    sampler = DistributedSampler(training_data, seed=arguments.seed)
    loader = DataLoader(training_data, arguments.batch_size, sampler=sampler, drop_last=True)

    torch.manual_seed(arguments.seed)
    model = DistributedDataParallel(make_model(arguments.hidden))
    optimizer = OPTIMIZERS[arguments.optimizer](model.parameters(), arguments.learning_rate)
    kfac = make_kfac(model, arguments)

    losses, seconds = train(model, loader, sampler, arguments.steps, optimizer, kfac)
    reached = accuracy(model.module, load(arguments.data, "t10k"))
    if dist.get_rank() == 0:
        median = sorted(seconds)[len(seconds) // 2]
        print(f"loss {losses[-1]:.4f}  accuracy {reached:.4f}  median step {median * 1e3:.1f} ms", flush=True)
        if arguments.output:
            with open(arguments.output, "w") as file:
                json.dump({"arguments": vars(arguments), "losses": losses, "step_seconds": seconds,
                           "accuracy": reached}, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
