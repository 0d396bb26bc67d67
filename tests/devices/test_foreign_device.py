"""All that users do with networks runs on a device that is not the CPU, and comes to the same.

No accelerator is needed: `accelerator.cpp` is one in the host's memory. It refuses what a real one refuses, a tensor or
a generator of another device, and its kernels are the CPU's, so that its results must be theirs.
"""

import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
import torch

from tests.devices.accelerator import SOURCE, build

LONGEST = 900  # seconds of a group on a busy machine: what hangs is a failure, and does not hold up the others
GROUPS = ("training", "surgery", "measuring", "methods", "rightsizing", "without float64")


@pytest.fixture(scope="session")
def library(pytestconfig: pytest.Config) -> Path:
    if shutil.which("c++") is None or shutil.which("ninja") is None:
        pytest.skip("there is no compiler, or no ninja, to build the device with")
    assert pytestconfig.cache is not None
    known = sha256(torch.__version__.encode() + SOURCE.read_bytes()).hexdigest()[:16]
    return build(pytestconfig.cache.mkdir("foreign-device") / known)


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_a_foreign_device_gives_the_same(group: str, library: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.devices", str(library), group],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
        timeout=LONGEST,
    )
    different = [line for line in ended.stdout.splitlines() if not line.endswith(": the same")]
    assert ended.returncode == 0, "\n".join(different) + ended.stderr[-2000:]
