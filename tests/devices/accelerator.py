"""A device of its own in the host's memory, built from `accelerator.cpp`: it stands in for an accelerator in tests.

To be plugged in before anything else is computed, in a process of its own: afterwards, torch counts on the device.
"""

import os
from pathlib import Path

import torch
from filelock import FileLock
from torch import Tensor
from torch.utils import backend_registration, cpp_extension

SOURCE = Path(__file__).with_suffix(".cpp")


class Foreign:
    """What `torch.foreign` offers, as `torch.cuda` does."""

    @staticmethod
    def is_available() -> bool:
        """Return that there is one."""
        return True

    @staticmethod
    def _is_in_bad_fork() -> bool:
        return False

    @staticmethod
    def current_device() -> int:
        """Return the first."""
        return 0

    @staticmethod
    def device_count() -> int:
        """Return how many there are."""
        return 2

    @staticmethod
    def manual_seed(seed: int) -> None:
        """Seed the device's own generator."""
        torch.ops.foreign.seed(seed)

    manual_seed_all = manual_seed

    @staticmethod
    def get_rng_state(device: object = None) -> Tensor:
        """Return the state of the device's own generator."""
        state: Tensor = torch.ops.foreign.state()
        return state

    @staticmethod
    def set_rng_state(state: Tensor, device: object = None) -> None:
        """Take the device's own generator back to a state."""
        torch.ops.foreign.set_state(state)


def build(folder: Path) -> Path:
    """Build the library, where it is not yet in this folder, and return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "built"):  # torch keeps a file called lock there, and waits until it is gone
        cpp_extension.load(
            "foreign",
            [str(SOURCE)],
            extra_cflags=["-O0"],
            build_directory=str(folder),
            is_python_module=False,
        )
    return folder / "foreign.so"


def plug_in(library: Path, *, float64: bool = True) -> None:
    """Let torch know the device `foreign`, with or without float64."""
    if not float64:
        os.environ["FOREIGN_WITHOUT_FLOAT64"] = "1"
    torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
    backend_registration.rename_privateuse1_backend("foreign")
    torch._register_device_module("foreign", Foreign)  # type: ignore[no-untyped-call]
    backend_registration.generate_methods_for_privateuse1_backend()
