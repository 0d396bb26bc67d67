"""`topiarist doctor`: what this machine has, what is missing, and the command that installs it."""

import os
import platform
import shutil
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING

from topiarist.cli.options import AsJson, Cluster
from topiarist.cli.output import emit, print_rows
from topiarist.errors import TopiaristError
from topiarist.settings import Record
from topiarist.threads import usable_cores

if TYPE_CHECKING:
    from packaging.requirements import Requirement

OF_DEVELOPERS = ("benchmarks", "dev", "docs", "zoo")  # extras that nobody needs who only uses topiarist
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
GIGABYTE = 2**30


class Package(Record):
    """A package that is asked for: the versions that will do, and the one that is here, if any."""

    name: str
    wanted: str
    found: str | None
    suits: bool


class Extra(Record):
    """What an extra brings, and how to install it where something of it is missing."""

    packages: tuple[Package, ...]
    install: str | None


class Computing(Record):
    """What torch computes with."""

    processor: str
    instructions: str
    cores: int
    threads: int
    accelerators: tuple[str, ...]
    memory_gb: float
    free_gb: float


class Diagnosis(Record):
    """What a machine has."""

    topiarist: str
    python: str
    platform: str
    computing: Computing
    packages: tuple[Package, ...]
    extras: dict[str, Extra]
    onnx_providers: tuple[str, ...]
    browser: str | None
    browser_driver: str | None
    cluster: str | None
    complaints: tuple[str, ...]


def doctor_command(cluster: Cluster = None, as_json: AsJson = False) -> None:
    """Show what this machine has, what is missing, and the command that installs it.

    Example: topiarist doctor

    What is optional may be missing. Exit code 2 means that a package that is always needed is missing or of a version
    that does not suit, or that the cluster asked for does not answer.
    """
    found = diagnosis(cluster)
    emit(found.to_json(), as_json=as_json, show=lambda _: print_rows(rows_of(found)))
    if found.complaints:
        raise TopiaristError("; ".join(found.complaints))


def diagnosis(cluster: str | None = None) -> Diagnosis:
    """Return what this machine has, and what a cluster says, where one is named."""
    packages, extras = declared_packages()
    complaints = [f'{_found(one)}: pip install "{one.name}{one.wanted}"' for one in packages if not one.suits]
    answer = None
    if cluster is not None:
        try:
            answer = workers_of(cluster)
        except TopiaristError as error:
            complaints.append(str(error))
    return Diagnosis(
        topiarist=version("topiarist"),
        python=platform.python_version(),
        platform=platform.platform(),
        computing=computing(),
        packages=packages,
        extras=extras,
        onnx_providers=onnx_providers(),
        browser=next((place for name in BROWSERS if (place := shutil.which(name)) is not None), None),
        browser_driver=shutil.which("chromedriver"),
        cluster=answer,
        complaints=tuple(complaints),
    )


def declared_packages() -> tuple[tuple[Package, ...], dict[str, Extra]]:
    """Return the packages that are always needed, and those of the extras, as the installed topiarist declares them."""
    from packaging.requirements import Requirement

    always: list[Package] = []
    extras: dict[str, list[Package]] = {}
    for wanted in map(Requirement, requires("topiarist") or ()):
        extra = _extra_of(wanted)
        if extra is None and (wanted.marker is None or wanted.marker.evaluate()):
            always.append(_package(wanted))
        elif extra is not None and extra not in OF_DEVELOPERS:
            extras.setdefault(extra, []).append(_package(wanted))
    return tuple(always), {
        name: Extra(
            packages=tuple(packages),
            install=None if all(one.suits for one in packages) else f'pip install "topiarist[{name}]"',
        )
        for name, packages in extras.items()
    }


def _extra_of(wanted: "Requirement") -> str | None:
    """Return the extra that a requirement belongs to, where it belongs to one."""
    said = str(wanted.marker or "")
    return said.partition("extra == ")[2].split('"')[1] if "extra == " in said else None


def _package(wanted: "Requirement") -> Package:
    """Return a package that is required, with what is here of it."""
    try:
        found = version(wanted.name)
    except PackageNotFoundError:
        found = None
    suits = found is not None and wanted.specifier.contains(found, prereleases=True)
    return Package(name=wanted.name, wanted=str(wanted.specifier), found=found, suits=suits)


def computing() -> Computing:
    """Return what torch computes with."""
    import torch

    from topiarist.measurement.tables.machine import processor_name

    memory = import_module("psutil").virtual_memory()  # of distributed; it has no types
    graphics = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    apple = ["mps"] if torch.backends.mps.is_available() else []
    return Computing(
        processor=processor_name(),
        instructions=torch.backends.cpu.get_cpu_capability(),
        cores=usable_cores(),
        threads=torch.get_num_threads(),
        accelerators=(*graphics, *apple),
        memory_gb=memory.total / GIGABYTE,
        free_gb=memory.available / GIGABYTE,
    )


def onnx_providers() -> tuple[str, ...]:
    """Return where ONNX Runtime can compute; nothing where it is not installed, or cannot be loaded."""
    try:
        return tuple(import_module("onnxruntime").get_available_providers())
    except ImportError:
        return ()


def workers_of(address: str) -> str:
    """Return what the cluster at an address has, or raise why it cannot be used."""
    from topiarist.parallel.dask_cluster import connected

    with connected(address) as client:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        threads = sum(worker["nthreads"] for worker in workers)
        memory = sum(worker["memory_limit"] for worker in workers) / GIGABYTE
        return f"{address}: {_counted(len(workers), 'worker')}, {_counted(threads, 'thread')}, {memory:.1f} GB"


def _counted(number: int, what: str) -> str:
    """Return a number of things in words."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def rows_of(found: Diagnosis) -> dict[str, str]:
    """Return a diagnosis as names and values."""
    machine = found.computing
    set_by = f" (OMP_NUM_THREADS={os.environ['OMP_NUM_THREADS']})" if "OMP_NUM_THREADS" in os.environ else ""
    driver = "with chromedriver" if found.browser_driver else "without chromedriver"
    return {
        "topiarist": found.topiarist,
        "Python": f"{found.python}, {found.platform}",
        "processor": f"{machine.processor}; {machine.instructions}",
        "threads": f"torch uses {machine.threads} of {machine.cores} cores{set_by}",
        "accelerators": ", ".join(machine.accelerators) or "none that torch can use",
        "memory": f"{machine.free_gb:.1f} of {machine.memory_gb:.1f} GB are free",
        "packages": ", ".join(map(_found, found.packages)),
        **{f"extra {name}": _extra_line(extra) for name, extra in found.extras.items()},
        "ONNX Runtime": ", ".join(found.onnx_providers) or "not installed",
        "browser": f"{found.browser}, {driver}" if found.browser else "none; only the tests of reports need Chromium",
        **({} if found.cluster is None else {"cluster": found.cluster}),
    }


def _extra_line(extra: Extra) -> str:
    """Return what an extra brings, and how to install what is missing of it."""
    packages = ", ".join(map(_found, extra.packages))
    return packages if extra.install is None else f"{packages}: {extra.install}"


def _found(package: Package) -> str:
    """Return a package and its version in words, with what is wrong about it."""
    if package.found is None:
        return f"{package.name} is missing"
    return f"{package.name} {package.found}" + ("" if package.suits else f", which is not {package.wanted}")
