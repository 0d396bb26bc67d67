"""Freed memory goes back to the system: what is counted is the resident memory of a process of its own."""

import os
import subprocess
import sys
from typing import Any

import pytest

from topiarist.memory import _trim, return_freed

FREED = """
import sys
from pathlib import Path
from topiarist.memory import return_freed

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

blocks = [bytearray(60_000) for _ in range(2_000)]  # below what the C library maps by itself
blocks = blocks[::20]
before = resident()
return_freed(cycles=True)
assert before - resident() > 60e6, (before, resident())
"""


MAPPED = """
import sys
from pathlib import Path
from topiarist.memory import map_large_blocks

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

if len(sys.argv) > 1:
    map_large_blocks()
bytearray(30_000_000)  # freed: by itself the C library keeps blocks of up to this size from then on
blocks = [bytearray(12_000_000) for _ in range(10)]
before = resident()
last = blocks.pop()
blocks.clear()
print(before - resident() > 100e6)
"""


def test_it_can_be_asked_anywhere() -> None:
    return_freed()
    return_freed(cycles=True)
    subprocess.run([sys.executable, "-c", "from topiarist.memory import map_large_blocks as m; m()"], check=True)


@pytest.mark.skipif(_trim() is None, reason="this C library has nothing to ask for it")
@pytest.mark.parametrize(("words", "given_back"), [((), "False"), (("mapped",), "True")])
def test_large_blocks_go_back_when_they_are_freed(words: tuple[str, ...], given_back: str) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}  # Dask sets some
    how: dict[str, Any] = {"capture_output": True, "text": True, "check": True, "env": own}
    ended = subprocess.run([sys.executable, "-c", MAPPED, *words], **how)
    assert ended.stdout.strip() == given_back


@pytest.mark.skipif(_trim() is None, reason="this C library has nothing to ask for it")
def test_freed_memory_between_blocks_in_use_is_given_back() -> None:
    ended = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True)
    assert not ended.returncode, ended.stderr
