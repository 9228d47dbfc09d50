# SPDX-License-Identifier: Apache-2.0
"""DDP communication hook: the daemon sees a model's gradients, and plans how to merge them.

    state = braid.torch.DDPHookState(model)
    model.register_comm_hook(state, braid.torch.ddp_hook)

DDP rebuilds its buckets after the first iteration, so a bucket is no name to agree on; a parameter
is. Knowing gradients and when they are ready, the daemon may merge and order them as its plan
says.

The first two iterations are looked at: their buckets go as they are, and say which parameters DDP
reduces and in which order they become ready (the second one's are DDP's rebuilt ones). Neighbours
make up tensors that are large enough to be planned by themselves (see tensor_sizes.py). These are
then registered, and from the third iteration on submitted.

Where collectives of a GPU go in two levels, gradients without a codec stay in DDP's buckets: within a
node NCCL adds them, for which few large operations are best, and planned tensors go over braid alone.

(No postponed annotations in this file: DDP inspects those of the hook.)
"""

import logging
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Optional

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from braid import BraidError
from braid.torch.ddp.claims import ended, has_claims, is_claimed, locals_of
from braid.torch.ddp.codecs import because_of_codec, codec_of
from braid.torch.ddp.gradients import GradientSet
from braid.torch.ddp.planned_tensors import Gradient, members_of
from braid.torch.ddp.power_sgd import rank_of, shape_of
from braid.torch.ddp.registrations import place_for
from braid.torch.ddp.tensor_sizes import smallest_tensor_bytes
from braid.torch.group.process_group import BraidProcessGroup
from braid.torch.group.training_group import backend_of
from braid.torch.group.unheard import refuse_nans
from braid.torch.operations import devices
from braid.torch.operations.carriage import dtype_of
from braid.torch.operations.failures import as_distributed
from braid.torch.operations.futures import mapped
from braid.torch.planned.tensors import TENSORS_MAX

_log = logging.getLogger("braid")
_STEPS_TO_LOOK = 2
# What is left of a tensor's name for that of a parameter.
_NAME_BYTES_MAX = 1023 - 64


class DDPHookState:
    """The gradients of one model. Make it on all ranks, in one order."""

    def __init__(
        self, model: torch.nn.Module, process_group: Optional[dist.ProcessGroup] = None
    ) -> None:
        group = process_group or _group_of(model)
        if not isinstance(group, BraidProcessGroup):
            raise TypeError(
                f"braid's DDP hook needs a process group of the backend braid, "
                f"this one is {backend_of(group)}"
            )
        is_ddp = isinstance(model, DistributedDataParallel)
        module = model.module if is_ddp else model
        self.group = group
        self.step = -1
        self._ddp = weakref.ref(model) if is_ddp else None
        self._place = place_for(self, group)
        named = list(module.named_parameters())
        self._names = {id(parameter): name for name, parameter in named}
        self._module = weakref.ref(module)
        self._parameters = [parameter for _, parameter in named]  # Keeps their ids theirs.
        # By bucket.
        self._seen: list[tuple[list[torch.Tensor], torch.dtype]] = []
        self._devices: set[torch.device] = set()
        trained = [parameter for parameter in self._parameters if parameter.requires_grad]
        self._bytes_min = smallest_tensor_bytes(group, trained)
        self._gradients: Optional[GradientSet] = None
        self._whole_because = ""
        self._factor = 1.0 / group.size()
        self._replacement: Optional[Callable[[dist.GradBucket], Any]] = None

    def replace(self, hook: Callable[[dist.GradBucket], Any]) -> None:
        """From here on, between iterations, buckets go to `hook`."""
        self._replacement = hook

    def average(self, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        """Averages one bucket, as the parameters that it consists of if they are known."""
        if self._replacement is not None:
            return self._replacement(bucket)
        if bucket.index() == 0:
            # DDP starts its buckets in order, each parameter in one of them: one step an iteration.
            self._begin()
        buffer, parameters = bucket.buffer(), bucket.parameters()
        if has_claims():
            claimed = [is_claimed(parameter) for parameter in parameters]
            if all(claimed):
                return ended(buffer)
            if any(claimed):
                return self._average_around(bucket)
        if self._gradients is not None:
            future = self._gradients.average(parameters, buffer)
            if future is not None:
                return future
            if dtype_of(parameters[0].dtype) is not None:
                self._give_up("its buckets hold other parameters than before")
        elif self.step < _STEPS_TO_LOOK:
            self._look(parameters, buffer)
        return self._average_whole(buffer)

    def _average_whole(self, buffer: torch.Tensor) -> torch.futures.Future[torch.Tensor]:
        # Scaled before the sum, as DDP itself does it.
        buffer.mul_(self._factor)
        return mapped(self.group.future_sum(buffer), _first)

    def _average_around(self, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        """A bucket of which an optimizer of braid reduces some gradients itself."""
        self._whole_because = "an optimizer of braid reduces some gradients of its buckets"
        put_back = locals_of(bucket)
        return mapped(self._average_whole(bucket.buffer()), put_back)

    def _begin(self) -> None:
        self.step += 1
        self._leave_claimed()
        active_ranks = self._count_active_ranks()
        self._factor = 1.0 / (active_ranks or self.group.size())
        if self.step == _STEPS_TO_LOOK:
            self._register()
        if self._gradients is not None:
            self._gradients.begin(self.step, active_ranks)
        elif self.step < _STEPS_TO_LOOK:
            self._seen.clear()

    def _leave_claimed(self) -> None:
        """Before a step's first bucket: those of the last step have all ended."""
        if self._gradients is None:
            return
        any_claimed, all_claimed = self._gradients.claimed()
        if any_claimed:
            self._gradients = None
        if any_claimed and not all_claimed:
            _tell_whole(self._place.prefix, "an optimizer of braid has come to reduce some of them")

    def _look(self, parameters: list[torch.Tensor], buffer: torch.Tensor) -> None:
        if dtype_of(parameters[0].dtype) is None:
            pass  # Such buckets, of complex numbers for one, always go as they are.
        elif buffer.is_sparse:
            self._whole_because = "it has sparse gradients"
        elif sum(parameter.numel() for parameter in parameters) != buffer.numel():
            self._whole_because = "its buckets have gaps"
        else:
            self._seen.append((parameters, buffer.dtype))
            self._devices.update(devices.cuda.devices_of(buffer))

    def _register(self) -> None:
        """All ranks have seen the same buckets, so they decide alike."""
        seen, self._seen = self._seen, []
        if getattr(self._model(), "skip_all_reduce_unused_params", False):
            self._whole_because = "it leaves out buckets of unused parameters"
        elif _have_one_twice(parameters for parameters, _ in seen):
            self._whole_because = "its buckets hold a parameter twice"
        buckets = [] if self._whole_because else self._gradients_of(seen)
        device = next(iter(self._devices), None)  # DDP has all of a model's gradients on one.
        if self._go_in_two_levels(buckets, device):
            if self.group.rank() == 0:
                _log.info("gradients of model %s go by DDP's buckets, in two levels", self._place.prefix)
            return
        members = [m for bucket in buckets for m in members_of(bucket, self._bytes_min)]
        if len(members) > TENSORS_MAX:
            self._whole_because = f"it has {len(members)} tensors, {TENSORS_MAX} are the most"
        if self._whole_because:
            _tell_whole(self._place.prefix, self._whole_because)
        elif members:
            try:
                self._gradients = GradientSet(self.group.engine, self._place, members, device)
            except BraidError as error:
                raise as_distributed(error, because_of_codec(error)) from error

    def _go_in_two_levels(
        self, buckets: list[list[Gradient]], device: Optional[torch.device]
    ) -> bool:
        if device is None or not self.group.engine.on_devices.goes_in_two_levels(device):
            return False
        return not any(g.codec or g.shape is not None for bucket in buckets for g in bucket)

    def _gradients_of(
        self, seen: list[tuple[list[torch.Tensor], torch.dtype]]
    ) -> list[list[Gradient]]:
        buckets, place = [], 0
        for parameters, dtype in seen:
            bucket = []
            for parameter in parameters:
                bucket.append(self._gradient(place, parameter, dtype))
                place += 1
            buckets.append(bucket)
        return buckets

    def _gradient(self, place: int, parameter: torch.Tensor, dtype: torch.dtype) -> Gradient:
        name, codec = self._name_of(parameter, place), self._codec_of(parameter, dtype)
        rank = rank_of(codec)
        if rank is None:
            return Gradient(name, parameter, dtype, codec)
        return Gradient(name, parameter, dtype, shape=shape_of(parameter, rank))

    def _name_of(self, parameter: torch.Tensor, place: int) -> str:
        name = self._names.get(id(parameter), f"#{place}")
        return name if len(name.encode()) <= _NAME_BYTES_MAX else f"#{place}"

    def _codec_of(self, parameter: torch.Tensor, dtype: torch.dtype) -> str:
        module, name = self._module(), self._names.get(id(parameter))
        return "" if module is None or name is None else codec_of(module, name, dtype)

    def _give_up(self, reason: str) -> None:
        """From here on buckets go as they are. Gradients are planned all or none."""
        gradients, self._gradients = self._gradients, None
        _tell_whole(self._place.prefix, reason)
        gradients.fill_up()

    def _count_active_ranks(self) -> Optional[int]:
        """How many ranks to divide by, where DDP's join() asks for those that still have inputs."""
        model = self._model()
        if model is None or not model._join_config.enable or model._divide_by_initial_world_size:
            return None
        # A rank that has joined calls the hook itself, outside of any backward pass.
        active = torch.tensor([float(torch._C._current_graph_task_id() != -1)])
        self.group.allreduce([active]).wait()
        return max(1, int(active.item()))

    def _model(self) -> Any:
        return self._ddp() if self._ddp is not None else None


def ddp_hook(state: DDPHookState, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages one bucket of DDP."""
    if state.group.checks_nans:
        refuse_nans([bucket.buffer()], "DDP's gradients", state.group.getRank())
    return state.average(bucket)


def _have_one_twice(buckets: Iterable[list[torch.Tensor]]) -> bool:
    ids = [id(parameter) for parameters in buckets for parameter in parameters]
    return len(set(ids)) != len(ids)


def _tell_whole(prefix: str, reason: str) -> None:
    _log.warning("gradients of model %s are reduced by DDP's buckets: %s", prefix, reason)


def _first(future: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
    return future.value()[0]


def _group_of(model: torch.nn.Module) -> dist.ProcessGroup:
    if isinstance(model, DistributedDataParallel):
        return model.process_group
    return dist.distributed_c10d._get_default_group()
