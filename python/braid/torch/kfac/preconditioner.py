# SPDX-License-Identifier: Apache-2.0
"""K-FAC beside any optimizer, with its work divided between the ranks.

K-FAC: Martens and Grosse, "Optimizing Neural Networks with Kronecker-factored Approximate
Curvature", ICML 2015. SPD-KFAC: Shi, Zhang and Li, "Accelerating Distributed K-FAC with Smart
Parallelism of Computing and Communication Tasks", ICDCS 2021; its public code has D-KFAC and
MPD-KFAC, too. DP-KFAC: Zhang, Shi, Wang and Li, "Scalable K-FAC Training for Deep Neural Networks
with Distributed Preconditioning", 2022.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

from braid.torch.ddp import claims
from braid.torch.group.training_group import braid_group
from braid.torch.kfac.averaging import FactorAverages, spread_matrix
from braid.torch.kfac.factors import Factor
from braid.torch.kfac.failures import Failures
from braid.torch.kfac.hooks import Watched, Watcher
from braid.torch.kfac.inverses import METHODS
from braid.torch.kfac.inverting import Inverses
from braid.torch.kfac.layers import layers_of
from braid.torch.kfac.owners import FixedOwners, by_layer, everybody, round_robin
from braid.torch.kfac.placing import PlacedOwners
from braid.torch.kfac.settings import Given, Numbers
from braid.torch.kfac.updating import FactorUpdates
from braid.torch.operations.placed_work import PlacedWork

_MODES = ("spd", "mpd", "d", "dp")
_WIRE_DTYPES = (None, torch.float64, torch.float32, torch.bfloat16)


class KFAC:
    """Multiplies the gradient of each layer with the inverse of its curvature, in Kronecker factors.

        kfac = KFAC(model, damping=0.01)
        for inputs, labels in data:
            optimizer.zero_grad()
            criterion(model(inputs), labels).backward()
            kfac.step()
            optimizer.step()

    It knows torch.nn.Linear and torch.nn.Conv2d; other gradients stay as they are, except that a
    model without a DistributedDataParallel gets the means of all ranks' gradients in step().

    Made, stepped, and asked for its state on all ranks of the group alike. Where torch.distributed
    is not initialized there is one rank, and no daemon is needed. After step() all ranks have the
    same gradients.

    Factors are made in the forward and backward passes of modules in training mode. What is summed
    over several passes before a step() is one batch: each pass has its part of the loss, as
    always. Losses are means over a rank's batch, of which DistributedDataParallel makes the mean
    over all ranks: factors are those of that mean, however many ranks there are.

    `mode` says how the ranks divide the work:
    - "spd": factors are averaged while the passes go on, and inverses are placed by their cost;
    - "mpd": factors are averaged in step(), and inverses go around;
    - "d": factors are averaged in step(), and each rank makes all inverses;
    - "dp": the owner of a layer makes its factors of its own batch alone.

    `failures` counts, by factor, what was not finite or had no inverse. Then the running average
    stays as it was, and the last good inverse is used, on all ranks. `placement` is what
    braid.place() said last, if it was asked.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        mode: str = "spd",
        factor_update_steps: Given = 1,
        inv_update_steps: Given = 1,
        damping: Given = 1e-3,
        factor_decay: Given = 0.95,
        kl_clip: Given | None = 1e-3,
        lr: Given = 0.1,
        compute_method: str = "eigen",
        factor_dtype: torch.dtype | None = None,
        skip_layers: Sequence[str] = (),
        *,
        grad_scaler: Any = None,
        process_group: Any = None,
    ) -> None:
        """Numbers may be functions of the step, which begins at 0. `damping` counts where inverses are
        made, and until they are made anew.

        `kl_clip` and `lr` bound the change of the model, as in kfac-pytorch; None: not at all.
        `factor_dtype` is the type in which factors travel, torch.bfloat16 for one. `skip_layers`
        are regular expressions for names of modules, or of their classes. `grad_scaler` is the
        torch.amp.GradScaler of the losses, or what returns its scale: then step() comes after
        scaler.unscale_(optimizer).
        """
        _check(mode, compute_method, factor_dtype, skip_layers, grad_scaler)
        self._numbers = Numbers(
            factor_update_steps=factor_update_steps, inv_update_steps=inv_update_steps,
            damping=damping, factor_decay=factor_decay, kl_clip=kl_clip, lr=lr,
        )  # fmt: skip
        if isinstance(model, torch.nn.parallel.DistributedDataParallel):
            model = model.module
        self._model = model
        self._layers = [
            Watched(each, Factor(each, "A"), Factor(each, "G"))
            for each in layers_of(model, skip_layers)
        ]
        if not self._layers:
            raise ValueError("KFAC: the model has no Linear or Conv2d that it could precondition")
        self._mode = mode
        self._scale_of = getattr(grad_scaler, "get_scale", grad_scaler)
        self._method = METHODS[compute_method]()
        self._steps = 0
        self._damping = 0.0  # That of the latest inverses.
        self._is_loaded = False
        self._divide(process_group, factor_dtype)
        self._begin_step()
        self._watch()

    @property
    def steps(self) -> int:
        """How often step() was called."""
        return self._steps

    @property
    def failures(self) -> Mapping[str, int]:
        return self._failures.counts

    @property
    def placement(self) -> Any:
        return self._owners.placement

    @torch.no_grad()
    def step(self) -> None:
        """Preconditions the gradients of all layers, in place. Raises DistBackendError, which names
        what has failed."""
        works = self._average_gradients()
        self._updates.submit_rest()
        is_due = self._steps % self._numbers.at("inv_update_steps", self._steps) == 0
        if is_due or self._is_loaded:
            self._damping = self._numbers.at("damping", self._steps)
            self._inverses.update(self._steps, self._damping, self._is_there)
            self._is_loaded = False
        self._updates.finish_step()
        for work in works:
            work.wait()
        self._precondition()
        self._factor_work.tell_spans()
        self._steps += 1
        self._begin_step()

    def remove(self) -> None:
        """Takes the hooks off the model."""
        self._watcher.remove()

    def state_dict(self) -> dict[str, Any]:
        """Steps, numbers that are no functions, and both factors of each layer, as kfac-pytorch has
        them. With several ranks in the mode "dp" it is a collective."""
        layers = {}
        for watched in self._layers:
            layers[watched.layer.name] = {
                factor.kind: self._whole_matrix(factor) for factor in (watched.a, watched.g)
            }
        return {"steps": self._steps, **self._numbers.constants(), "layers": layers}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Loads the state of this class, or kfac-pytorch's. The next step() makes all inverses."""
        self._updates.refuse_begun("load_state_dict()")
        names = {each.layer.name for each in self._layers}
        layers = _layers_of_state(state_dict, names)
        if differing := sorted(names ^ set(layers)):
            raise ValueError(f"KFAC: the state is of other layers; differing: {differing[:4]}")
        for watched in self._layers:
            for factor in (watched.a, watched.g):
                _check_matrix(factor, layers[watched.layer.name][factor.kind])
        self._numbers.load(state_dict)
        self._steps = int(state_dict["steps"])
        for watched in self._layers:
            for factor in (watched.a, watched.g):
                matrix = layers[watched.layer.name][factor.kind]
                factor.load(matrix) if matrix is not None else factor.forget()
        self._is_loaded = True
        self._begin_step()

    def _divide(self, process_group: Any, factor_dtype: torch.dtype | None) -> None:
        """The work, between the ranks."""
        self._group = _group_of(process_group)
        self._size = 1 if self._group is None else self._group.size()
        # Whether only the owner of a layer has its factors.
        self._is_apart = self._mode == "dp" and self._size > 1
        self._failures = Failures()
        self._factors = [each.a for each in self._layers] + [each.g for each in self._layers[::-1]]
        averages = None
        if self._group is not None and not self._is_apart:
            averages = FactorAverages(self._group, self._factors, factor_dtype)
        is_pipelined = self._mode == "spd"
        self._updates = FactorUpdates(self._factors, averages, is_pipelined, self._failures)
        self._owners = self._owners_of_mode()
        job = None if self._group is None else self._group.engine.job
        self._factor_work = PlacedWork(job, "factors")
        self._inverses = Inverses(
            self._method, self._factors, self._owners, self._group, self._failures
        )

    def _owners_of_mode(self) -> FixedOwners:
        count = len(self._factors)
        if self._size == 1 or self._mode == "d":
            return FixedOwners(everybody(count))
        if self._mode == "mpd":
            return FixedOwners(round_robin(count, self._size))
        if self._mode == "dp":
            return FixedOwners(by_layer(self._factors, self._size))
        bytes_of = [
            (self._method.elements(each.size) + 1) * each.dtype.itemsize for each in self._factors
        ]
        return PlacedOwners(self._group, self._factors, bytes_of)

    def _watch(self) -> None:
        watched = self._layers
        if self._is_apart:
            watched = [each for each in watched if self._owner_of(each.a) == self._group.rank()]
        self._watcher = Watcher(watched, self._updates, self._gradient_scale, self._factor_work)

    def _begin_step(self) -> None:
        at = self._numbers.at
        makes_factors = self._steps % at("factor_update_steps", self._steps) == 0
        self._updates.begin_step(
            self._steps, at("factor_decay", self._steps) if makes_factors else None
        )
        self._scale: float | None = None

    def _gradient_scale(self) -> float:
        """What makes a gradient that a hook sees one of the mean loss of all ranks."""
        if self._scale is None:
            scale = 1.0 if self._scale_of is None else float(self._scale_of())
            self._scale = 1 / (scale * self._size)
        return self._scale

    def _is_there(self, factor: Factor, is_wanted: bool) -> bool:
        if is_wanted or factor.average is None:
            self._updates.finish(factor)
        # What another rank has of its layer alone, only that one knows.
        return factor.average is not None or self._is_apart

    def _average_gradients(self) -> list[Any]:
        """Begins to average those that no DistributedDataParallel averages."""
        if self._size == 1:
            return []
        averaged = claims.ids_in_ddp()
        gradients = [
            parameter.grad
            for parameter in self._model.parameters()
            if parameter.grad is not None
            and (id(parameter) not in averaged or claims.is_claimed(parameter))
        ]
        if not gradients:
            return []
        gradients.sort(key=lambda gradient: str(gradient.dtype))
        return [self._group.allreduce(gradients, ReduceOp.AVG)]

    def _precondition(self) -> None:
        found = []
        for watched in self._layers:
            a, g = self._inverses.of(watched.a), self._inverses.of(watched.g)
            if a is not None and g is not None and watched.layer.has_gradient():
                before = watched.layer.gradient()
                after = self._method.precondition(before, a, g, self._damping)
                found.append((watched.layer, after, (before * after).sum()))
        scale = self._clipped([product for _, _, product in found])
        for layer, after, _ in found:
            layer.set_gradient(after if scale == 1.0 else after.mul_(scale))

    def _clipped(self, products: Sequence[torch.Tensor]) -> float:
        """What preconditioned gradients are multiplied with. `products` are those of gradients
        before and after."""
        bound = self._numbers.at("kl_clip", self._steps)
        if bound is None or not products:
            return 1.0
        change = torch.stack([product.double() for product in products]).sum().item()
        change *= self._numbers.at("lr", self._steps) ** 2
        return 1.0 if change == 0 else min(1.0, math.sqrt(bound / abs(change)))

    def _whole_matrix(self, factor: Factor) -> torch.Tensor | None:
        """None: there is none yet."""
        if self._is_apart:
            return spread_matrix(factor, self._group, self._owner_of(factor))
        return factor.matrix() if factor.average is not None else None

    def _owner_of(self, factor: Factor) -> int | None:
        return self._owners.now.of[self._factors.index(factor)]


def _group_of(process_group: Any) -> Any:
    """None: there is one rank, which needs no group."""
    if process_group is None:
        if not dist.is_initialized() or dist.get_world_size() == 1:
            return None
    group = braid_group(process_group, "KFAC")
    return group if group.size() > 1 else None


def _check(
    mode: str, method: str, factor_dtype: torch.dtype | None, skip_layers: Sequence[str],
    grad_scaler: Any,
) -> None:  # fmt: skip
    if mode not in _MODES:
        raise ValueError(f"KFAC: mode is one of {', '.join(_MODES)}, not {mode!r}")
    if method not in METHODS:
        raise ValueError(f"KFAC: compute_method is one of {', '.join(METHODS)}, not {method!r}")
    if factor_dtype not in _WIRE_DTYPES:
        known = ", ".join(map(str, _WIRE_DTYPES))
        raise ValueError(f"KFAC: factor_dtype is one of {known}, not {factor_dtype!r}")
    if not (grad_scaler is None or callable(getattr(grad_scaler, "get_scale", grad_scaler))):
        raise TypeError(
            "KFAC: grad_scaler is a torch.amp.GradScaler or a function that returns its scale, not "
            f"{grad_scaler!r}"
        )
    if isinstance(skip_layers, str):
        raise TypeError(f"KFAC: skip_layers is a list of patterns: [{skip_layers!r}]")


def _layers_of_state(state_dict: Mapping[str, Any], names: set[str]) -> Mapping[str, Any]:
    """By name. kfac-pytorch's names begin with a DistributedDataParallel's, if it was given one."""
    if "layers" not in state_dict:
        raise ValueError("KFAC: the state has no 'layers': it was saved without factors")
    layers = state_dict["layers"]
    if names & set(layers):
        return layers
    return {name.removeprefix("module."): factors for name, factors in layers.items()}


def _check_matrix(factor: Factor, matrix: torch.Tensor | None) -> None:
    if matrix is not None and tuple(matrix.shape) != (factor.size, factor.size):
        raise ValueError(
            f"KFAC: the state's factor {factor.name} has the shape {tuple(matrix.shape)}, "
            f"and this model's is {factor.size} × {factor.size}"
        )
