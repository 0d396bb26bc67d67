"""`topiarist doctor`: what it shows is what is there; the wheel's test has it where extras are missing."""

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

from tests.study.clusters import running_cluster
from topiarist.parallel import dask_cluster

Run = Callable[..., tuple[int, str, str]]


def test_it_shows_what_is_there(command: Run) -> None:
    code, out, err = command("doctor", "--json")
    found = json.loads(out)
    assert (code, err, found["complaints"], found["cluster"]) == (0, "", [], None)
    assert found["computing"]["instructions"] == torch.backends.cpu.get_cpu_capability()
    assert 0 < found["computing"]["free_gb"] < found["computing"]["memory_gb"]
    packages = {package["name"]: package for package in found["packages"]}
    assert packages["torch"]["found"] == version("torch") and packages["torch"]["suits"]
    assert {"onnx", "tables", "sound", "faces", "hub"} <= set(found["extras"]) and "dev" not in found["extras"]
    code, out, err = command("doctor")
    assert not any(line.endswith(" ") for line in out.splitlines())  # in a pipe, no line is filled with spaces
    assert (code, err) == (0, "") and f"torch {version('torch')}" in out and "accelerators" in out


def test_a_version_that_does_not_suit_is_named_with_its_remedy(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["torch<2", "numpy>=2.1", 'nothing-of-this-name; extra == "onnx"']
    monkeypatch.setattr("topiarist.cli.doctor.requires", lambda _: wanted)
    code, out, err = command("doctor")
    assert (code, err) == (2, f'topiarist: torch {version("torch")}, which is not <2: pip install "torch<2"\n')
    assert 'nothing-of-this-name is missing: pip install "topiarist[onnx]"' in " ".join(out.split())


@pytest.mark.slow
def test_a_cluster_is_asked(command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_cluster(tmp_path) as cluster:
        cluster.add_worker()
        code, out, err = command("doctor", "--cluster", cluster.address, "--json")
        assert (code, err) == (0, "")
        assert json.loads(out)["cluster"].startswith(f"{cluster.address}: 1 worker, 1 thread, ")
    monkeypatch.setattr(dask_cluster, "PATIENCE", "0.5s")
    code, out, err = command("doctor", "--cluster", cluster.address, "--json")
    assert code == 2 and err.startswith(f"topiarist: no Dask scheduler answers at {cluster.address}: ")
    assert json.loads(out)["cluster"] is None
