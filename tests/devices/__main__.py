"""Runs scenarios on the CPU and on the device `foreign`: `python -m tests.devices LIBRARY GROUP [NAME…]`.

In a process of its own, because the device stays once it is plugged in. What differs, or fails, is printed.
"""

import sys
import traceback
from itertools import zip_longest
from pathlib import Path

import torch
from torch import nn

from tests.devices.accelerator import plug_in
from tests.devices.scenarios import SCENARIOS, Result, Scenario

# The device runs the CPU's kernels, and differs where the CPU has one of its own: fused attention, fused Adam, which
# turns what rounding leaves of a gradient of zero, as of a bias before batch norm, into steps.
SAME = 1e-3


def difference(here: Result, there: Result) -> str | None:
    """Return how what came of a scenario on the device differs from what came of it on the CPU."""
    if isinstance(here, nn.Module) and isinstance(there, nn.Module):
        tensors = there.state_dict()
        away = [name for name, value in tensors.items() if value.device.type != "foreign"]
        if away:
            return f"{away} are not on the device"
        known = here.state_dict()
        if list(known) != list(tensors):
            return f"tensors are {list(tensors)}, and on the CPU {list(known)}"
        return next((f"{name}: {found}" for name in known if (found := difference(known[name], tensors[name]))), None)
    if isinstance(here, torch.Tensor) and isinstance(there, torch.Tensor):
        if here.shape != there.shape:
            return f"shape {tuple(there.shape)}, and on the CPU {tuple(here.shape)}"
        gap = (here.double() - there.cpu().double()).abs().max().item() if here.numel() else 0.0
        return None if gap <= SAME else f"differs by {gap:.2g}"
    return None if here == there else f"{there}, and on the CPU {here}"


def failure(scenario: Scenario) -> str | None:
    """Return why a scenario does not do on the device what it does on the CPU."""
    try:
        pairs = list(zip_longest(scenario("cpu"), scenario("foreign")))
    except Exception:  # whatever it is, it is told
        return traceback.format_exc()
    found = [f"result {number}: {why}" for number, pair in enumerate(pairs) if (why := difference(*pair))]
    return "; ".join(found) or None


def main() -> int:
    """Run the scenarios of a group and return how many failed."""
    library, group, *names = sys.argv[1:]
    plug_in(Path(library), float64=group != "without float64")
    torch.set_num_threads(1)
    failed = 0
    for name, scenario in SCENARIOS[group].items():
        if names and name not in names:
            continue
        why = failure(scenario)
        failed += why is not None
        print(f"{group}, {name}: {why or 'the same'}", flush=True)
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
