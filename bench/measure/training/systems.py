# SPDX-License-Identifier: Apache-2.0
"""The systems: by what, and encoded how, gradients travel, and by what, where and when weights are updated."""

import argparse
import dataclasses
import re
from collections.abc import Callable
from typing import Any

from braid.torch.methods.delay import METHODS, PULLS, Delay, parse_delay

from ..options import number, one_of

BRAID, GLOO, SHARDED, ACCO, DILOCO, LOCAL = "braid", "gloo", "sharded", "acco", "diloco", "local-sgd"
ADAMW, KFAC, MUON = "adamw", "kfac", "muon"
# torch's own communication hooks for DDP; optimizers.py registers them.
HOOKS = ("fp16", "bf16", "powersgd", "batched-powersgd", "quantize-per-tensor", "quantize-per-channel")
_FORMS = (
    f"braid[:CODEC|:hook=HOOK], gloo[:HOOK], sharded, acco, {', '.join(METHODS)}, diloco:STEPS, local-sgd:STEPS, "
    "adamw, kfac, muon"
)
_OWN_SETTINGS = {"learning-rate": (1e-9, 1e3), "momentum": (0.0, 0.999999), "bucket-mib": (0.001, 1e4)}
_FORCE = "force"
_FORWARD, _BACKWARD = "overlap_forward", "overlap_backward"


def _steps(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,5}", text):
        raise ValueError(f"'{text}' is no number of steps")
    return int(text)


# By their names in braid.torch.kfac.KFAC.
_KFAC_OPTIONS: dict[str, Callable[[str], Any]] = {
    "mode": one_of(("spd", "mpd", "d", "dp")),
    "compute_method": one_of(("eigen", "inverse")),
    "factor_update_steps": _steps,
    "inv_update_steps": _steps,
    "damping": number(1e-12, 1e6),
    "kl_clip": number(1e-12, 1e12),
}

HELP = f"""\
systems
  braid[:CODEC]         DistributedDataParallel over braid, torch.optim.SGD: a script that says "gloo", with
                        BRAID_ENABLE=1 and BRAID_CODEC: any codec of docs/compression.md, such as braid:int8 or
                        braid:int4:block=128,rounding=stochastic; without one nothing is lost
  gloo[:HOOK]           the same over gloo, with one of torch's own communication hooks for DDP:
                        {", ".join(HOOKS)}
                        (PowerSGD with rank 4, from the third step on)
  braid:hook=HOOK       the same hook over braid
  sharded[:OPTION,...]  ShardedOptimizer with torch.optim.SGD; options: pull=bf16, overlap_forward, overlap_backward
  acco[:pull=bf16]      Acco with torch.optim.SGD: a step is half of a round, and two make one update
  od-sgd, ssd-sgd, cd-sgd[:OPTION,...]
                        DelayedOptimizer with the options of BRAID_UPDATE (docs/updates.md), and force: also where
                        training is known to get worse, or to diverge
  diloco:H              DiLoCo around torch.optim.SGD, H steps between synchronizations
  local-sgd:H           PostLocalSGD around torch.optim.SGD
  adamw                 as braid, with torch.optim.AdamW
  kfac[:OPTION,...]     as braid, with KFAC before torch.optim.SGD; options are KFAC's, with its names and defaults:
                        {", ".join(_KFAC_OPTIONS)}
  muon[:adamw=X]        as braid, with placed(torch.optim.Muon) for matrices, and AdamW with the learning rate X (0.001)
                        for other parameters
  With @learning-rate=X or @momentum=X behind it a system has its own: braid:dgc:ratio=0.01@momentum=0. AdamW and Muon
  have no such momentum: what they need besides the learning rate is as torch has it.
  @bucket-mib=X is DDP's bucket_cap_mb. Over gloo, torch's PowerSGD and quantization hooks need it so large
  that there is one bucket: with several they wait for each other in gloo's threads
"""


@dataclasses.dataclass(frozen=True)
class System:
    """One row of the table. What does not belong to its kind is as if it were not there."""

    text: str
    kind: str
    codec: str = ""  # of braid, as BRAID_CODEC has it
    hook: str = ""  # torch's, of braid and gloo
    delay: Delay = Delay()  # of METHODS
    is_forced: bool = False  # although it is known to train worse, or to diverge
    pull: str = "full"  # of sharded and acco
    overlaps_forward: bool = False
    overlaps_backward: bool = False
    sync_every: int = 1  # of diloco and local-sgd
    kfac: tuple[tuple[str, Any], ...] = ()  # options of KFAC that are not its defaults
    rest_learning_rate: float = 1e-3  # of muon: AdamW's
    learning_rate: float | None = None  # None: that of all
    momentum: float | None = None
    bucket_mib: float | None = None  # DDP's; without it 1 MiB and then 25 MiB

    def __str__(self) -> str:
        return self.text

    @property
    def backend(self) -> str:
        return GLOO if self.kind == GLOO else BRAID

    @property
    def is_delayed(self) -> bool:
        return self.kind in METHODS

    @property
    def uses_ddp(self) -> bool:
        return self.kind in (BRAID, GLOO, ADAMW, KFAC, MUON)

    @property
    def is_plain(self) -> bool:
        """Neither loses anything of a gradient nor trains otherwise than all."""
        return self.text in (BRAID, GLOO)

    @property
    def cycle_steps(self) -> int:
        """After so many steps the same is sent again."""
        if self.kind == "ssd-sgd":
            return self.delay.pull_every
        if self.kind == "cd-sgd":
            return self.delay.correction_every or 1
        return 2 if self.kind == ACCO else self.sync_every


def parse(text: str) -> System:
    way, *settings = text.split("@")
    kind, _, rest = way.partition(":")
    own = dict(_own_setting(text, setting) for setting in settings)
    try:
        if kind in (BRAID, GLOO) and not way.endswith(":"):
            return System(text, kind, **_gradients(kind, rest), **own)
        if kind in METHODS:
            return System(text, kind, **_delayed(kind, rest), **own)
        if kind in (SHARDED, ACCO):
            return System(text, kind, **_sharded(kind, rest), **own)
        if kind == KFAC:
            return System(text, kind, kfac=_kfac(rest), **own)
        if kind == MUON:
            return System(text, kind, **_muon(rest), **own)
        if way == ADAMW:
            return System(text, kind, **own)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}': {error}") from None
    if kind in (DILOCO, LOCAL) and re.fullmatch(r"[1-9]\d{0,5}", rest):
        return System(text, kind, sync_every=int(rest), **own)
    raise argparse.ArgumentTypeError(f"'{text}' is none of {_FORMS}")


def _own_setting(text: str, setting: str) -> tuple[str, float]:
    name, _, value = setting.partition("=")
    if name not in _OWN_SETTINGS:
        raise argparse.ArgumentTypeError(f"'{text}': after @ comes one of {', '.join(_OWN_SETTINGS)}")
    return name.replace("-", "_"), number(*_OWN_SETTINGS[name])(value)


def _gradients(kind: str, rest: str) -> dict:
    if kind == BRAID and not rest.startswith("hook="):
        return {"codec": rest}
    hook = rest.removeprefix("hook=")
    if hook not in HOOKS and rest:
        raise ValueError(f"a hook is one of {', '.join(HOOKS)}")
    return {"hook": hook}


def _delayed(kind: str, rest: str) -> dict:
    options = [part for part in rest.split(",") if part]
    own = ",".join(part for part in options if part != _FORCE)
    delay = parse_delay(f"{kind}:{own}")
    if "warmup_steps=" not in own:
        delay = dataclasses.replace(delay, warmup_steps=None)
    return {"delay": delay, "is_forced": _FORCE in options}


def _sharded(kind: str, rest: str) -> dict:
    """acco has the same options, but for what there is to overlap."""
    options = [part for part in rest.split(",") if part]
    known = [*(f"pull={pull}" for pull in PULLS), *((_FORWARD, _BACKWARD) if kind == SHARDED else ())]
    for option in options:
        if option not in known:
            raise ValueError(f"'{option}' is none of {', '.join(known)}")
    pulls = [option.removeprefix("pull=") for option in options if option.startswith("pull=")]
    return {
        "pull": (pulls or ["full"])[-1],
        "overlaps_forward": _FORWARD in options,
        "overlaps_backward": _BACKWARD in options,
    }


def _kfac(rest: str) -> tuple[tuple[str, Any], ...]:
    found = []
    for option in filter(None, rest.split(",")):
        name, _, value = option.partition("=")
        if name not in _KFAC_OPTIONS:
            raise ValueError(f"'{name}' is none of {', '.join(_KFAC_OPTIONS)}")
        found.append((name, _KFAC_OPTIONS[name](value)))
    return tuple(found)


def _muon(rest: str) -> dict:
    if not rest:
        return {}
    name, _, value = rest.partition("=")
    if name != "adamw":
        raise ValueError(f"'{name}' is not adamw")
    return {"rest_learning_rate": number(*_OWN_SETTINGS["learning-rate"])(value)}


def parse_list(text: str) -> list[System]:
    """Options have commas as well: a part NAME=VALUE, and a word that is an option, belong to the part before."""
    texts: list[str] = []
    for part in text.split(","):
        if texts and (re.match(r"[a-z_-]+=", part) or part in (_FORCE, _FORWARD, _BACKWARD)):
            texts[-1] += f",{part}"
        else:
            texts.append(part)
    if len(set(texts)) != len(texts):
        raise argparse.ArgumentTypeError(f"'{text}' names something twice")
    return [parse(one) for one in texts]


def objection(system: System, momentum: float, steps_between: int = 0) -> str:
    """Why it cannot be measured so; empty if it can. `steps_between`: two evaluations."""
    if system.is_delayed:
        own = momentum if system.momentum is None else system.momentum
        try:
            system.delay.refuse_divergence(own, system.is_forced)
        except ValueError as error:
            # To a script it says what is written in Python.
            return f"{system}: {str(error).replace('force=True', 'the option force')}"
    if steps_between % system.sync_every:
        every = system.sync_every
        return f"{system}: nodes have the same weights each {every} steps, and --evaluate-every is no multiple"
    return ""
