"""Where networks compute: the CPU, or an accelerator that torch knows.

Functions follow the network they are given. Generators stay on the CPU, so that the same seed gives the same order of
samples, initial weights and choices on any device; what a network draws itself, such as dropout, its device draws.
"""

from functools import cache
from typing import TYPE_CHECKING

from topiarist.errors import SettingsError

if TYPE_CHECKING:
    import torch

AUTO = "auto"


def find_device(name: str) -> "torch.device":
    """Return a device that can be used: cpu, cuda, cuda:1, mps; `auto` is this machine's accelerator, or the CPU.

    Raises
    ------
    SettingsError : where there is no such device

    Examples
    --------
    >>> find_device("cpu")
    device(type='cpu')
    """
    import torch  # noqa: PLC0415  # the command line reads this module before torch is needed

    if name == AUTO:
        return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    try:
        found = torch.device(name)
        torch.zeros(1, device=found).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        if "device type" in str(error) or name == "meta":
            known = "it is called cpu, cuda, cuda:1, mps or auto"
            raise SettingsError(f"the device '{name}' cannot be used: {known}") from error
        raise SettingsError(f"the device '{name}' cannot be used: {str(error).splitlines()[0]}") from error
    return found


def in_float64(numbers: "torch.Tensor") -> "torch.Tensor":
    """Return numbers in float64: where they are, or on the CPU where their device has no float64 (Apple's)."""
    import torch  # noqa: PLC0415

    return numbers.to(exact_device(numbers.device), torch.float64)


def exact_device(device: "torch.device") -> "torch.device":
    """Return the device, or the CPU in the place of one without float64."""
    import torch  # noqa: PLC0415

    return device if has_float64(device.type) else torch.device("cpu")


@cache
def has_float64(kind: str) -> bool:
    """Return whether devices of a kind, such as cuda or mps, compute in float64."""
    import torch  # noqa: PLC0415

    try:
        torch.zeros(1, dtype=torch.float64, device=kind)
    except (RuntimeError, TypeError):
        return False
    return True
