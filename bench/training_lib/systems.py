# SPDX-License-Identifier: Apache-2.0
"""The systems: by what, and encoded how, the gradients of a training travel."""

import argparse
import dataclasses
import re

BRAID, GLOO = "braid", "gloo"
POWER_SGD = "powersgd"
# torch's own communication hooks for DDP; hooks.py registers them.
HOOKS = ("fp16", "bf16", "powersgd", "batched-powersgd", "quantize-per-tensor", "quantize-per-channel")
_OWN_SETTINGS = {"learning-rate": (1e-9, 1e3), "momentum": (0.0, 0.999999), "bucket-mib": (0.001, 1e4)}


@dataclasses.dataclass(frozen=True)
class System:
    """One row of the table. What is None is as for all."""

    text: str
    backend: str
    codec: str = ""  # braid's, as BRAID_CODEC has it
    hook: str = ""  # torch's
    learning_rate: float | None = None
    momentum: float | None = None
    bucket_mib: float | None = None  # DDP's; without it 1 MiB and then 25 MiB

    @property
    def is_plain(self) -> bool:
        """Neither loses anything of a gradient nor trains otherwise than all."""
        return self.text in (BRAID, GLOO)


def parse(text: str) -> System:
    way, *settings = text.split("@")
    backend, _, rest = way.partition(":")
    if backend not in (BRAID, GLOO) or way.endswith(":"):
        raise argparse.ArgumentTypeError(
            f"'{text}' is none of braid, braid:CODEC, braid:hook=HOOK, gloo, gloo:HOOK"
        )
    codec, hook = "", ""
    if backend == GLOO:
        hook = rest
    elif rest.startswith("hook="):
        hook = rest.removeprefix("hook=")
    else:
        codec = rest
    if (hook or rest == "hook=") and hook not in HOOKS:
        raise argparse.ArgumentTypeError(f"'{text}': a hook is one of {', '.join(HOOKS)}")
    own = dict(_own_setting(text, setting) for setting in settings)
    return System(text, backend, codec, hook, **own)


def _own_setting(text: str, setting: str) -> tuple[str, float]:
    name, _, value = setting.partition("=")
    if name not in _OWN_SETTINGS:
        raise argparse.ArgumentTypeError(f"'{text}': after @ comes one of {', '.join(_OWN_SETTINGS)}")
    return name.replace("-", "_"), number(*_OWN_SETTINGS[name])(value)


def parse_list(text: str) -> list[System]:
    """A codec's parameters have commas as well: a part KEY=VALUE belongs to the part before it."""
    texts: list[str] = []
    for part in text.split(","):
        if texts and re.match(r"[a-z_-]+=", part):
            texts[-1] += f",{part}"
        else:
            texts.append(part)
    if len(set(texts)) != len(texts):
        raise argparse.ArgumentTypeError(f"'{text}' names something twice")
    return [parse(one) for one in texts]


def number(low: float, high: float):
    def parse_number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {low:g} to {high:g}")
        return value

    return parse_number
