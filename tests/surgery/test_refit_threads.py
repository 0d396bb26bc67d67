"""A refit computes on one thread: its runs are threads of Python's, which know of no limit until they ask for it."""

import os
import subprocess
import sys

import pytest

REFIT = """
import ctypes, threading, torch
from threadpoolctl import threadpool_info
from topiarist import surgery

found = [each["filepath"] for each in threadpool_info() if each["user_api"] == "openmp"]
(library,) = {path for path in found if "torch" in path}
openmp, counts = ctypes.CDLL(library), []

class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 8), torch.nn.Linear(8, 2)

    def forward(self, x):
        if threading.current_thread() is not threading.main_thread():
            counts.append(openmp.omp_get_max_threads())
        return self.second(self.first(x).relu())

x = torch.randn(64, 6)
surgery.remove(Counting().eval(), x[:2], units={"first": [0, 3]}, calibration=x, settling=0)
assert counts and set(counts) == {1}, counts
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for the OpenMP that torch's wheels for Linux bring")
def test_every_run_of_a_refit_has_one_thread() -> None:
    own = {**os.environ, "OMP_NUM_THREADS": "2"}
    ended = subprocess.run([sys.executable, "-c", REFIT], env=own, capture_output=True, text=True)
    assert not ended.returncode, ended.stderr
