"""What a measured time belongs to: this processor, these versions, a runtime and its threads."""

import os
import platform
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from topiarist.files import canonical_json, sha256
from topiarist.measurement.budget import Runtime


@dataclass(frozen=True)
class Machine:
    """Where layers were timed; times of another one are not used."""

    processor: str
    cores: int
    vectors: str
    torch: str
    onnxruntime: str | None
    runtime: Runtime
    threads: int

    @property
    def file_name(self) -> str:
        """The name of the file with its times."""
        return f"{self.runtime}-{self.threads}-{sha256(canonical_json(asdict(self)).encode())[:16]}.json"


def this_machine(runtime: Runtime, threads: int) -> Machine:
    """Return the machine that runs this."""
    return Machine(
        processor=processor_name(),
        cores=os.cpu_count() or 1,
        vectors=torch.backends.cpu.get_cpu_capability(),
        torch=torch.__version__,
        onnxruntime=None if runtime == "torch" else _version_of("onnxruntime"),
        runtime=runtime,
        threads=threads,
    )


@cache
def processor_name() -> str:
    """Return the processor's name as the system has it."""
    facts = Path("/proc/cpuinfo")
    wanted = ("vendor_id", "cpu family", "model", "model name", "stepping", "cache size")
    if facts.is_file():
        known: dict[str, str] = {}
        for line in facts.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            known.setdefault(name.strip(), value.strip())
        if found := [known[name] for name in wanted if name in known]:
            return " ".join(found)
    return f"{platform.machine()} {platform.processor()}".strip()


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
