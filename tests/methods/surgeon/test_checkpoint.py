"""The checkpoint: an evolution that was interrupted, or killed, ends where it would have ended, to the bit."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import nn

from tests.methods.surgeon.evolutions import (
    as_ours,
    as_published,
    assert_same_outcome,
    digits,
    network,
    part_of,
    same_weights,
    unstackable,
)
from topiarist import Data, TrainConfig, models, save
from topiarist.errors import ModelError, TopiaristError
from topiarist.evolution.lineage import Lineage
from topiarist.measurement import Budget
from topiarist.methods import Outcome, resize
from topiarist.methods.surgeon.branches import Branch, BranchTraining, TrainingSetup, edited, train_branch
from topiarist.methods.surgeon.checkpoint import CheckpointState, SurgeonCheckpoint
from topiarist.methods.surgeon.surgeon import SurgeonMethod
from topiarist.randomness import generator
from topiarist.surgery import DeepenNetwork, FactoriseLayer, GrowSpace, RemoveUnits, plan_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]

Case = tuple[Callable[[], nn.Module], Callable[[], Data], SurgeonMethod, dict[str, Any]]


def vgg() -> nn.Module:
    return models.vgg(0, 0, 1, 1, input_shape=(1, 8, 8), classes=10, dropout=0.2, generator=generator(0, "weights"))


CASES: dict[str, Case] = {
    "published": (lambda: network(10, 10), digits, as_published(3, learning_rate=0.3), {}),
    "ours": (lambda: network(12), digits, as_ours(20, search=3.0, aim="better", kinds=("renew", "grow", "remove")), {}),
    "ours, smaller": (
        lambda: network(20, 12),
        digits,
        as_ours(20, search=3.0, aim="smaller", kinds=("remove", "fold", "factorise")),
        {},
    ),
    "ours, to a budget": (
        lambda: network(20, 12),
        digits,
        as_ours(20, search=3.0, kinds=("grow", "remove")),
        {"budget": Budget(parameters=900)},
    ),
    "ours, convolutions": (
        vgg,
        lambda: digits(64, 20, 20, images=True),
        as_ours(10, search=3.0, aim="smaller", kinds=("grow", "remove")),
        {},
    ),
}


class InterruptionError(Exception):
    """Somebody wants it to end."""


def run(name: str, checkpoint: Path | None = None, *, seed: int = 3, **others: Any) -> Outcome:
    make, data, method, more = CASES[name]
    return resize(make(), data(), method, seed=seed, latency=False, checkpoint=checkpoint, **more, **others)


def interrupted(name: str, checkpoint: Path, *, seed: int = 3, after: int = 0) -> list[float]:
    """Run an evolution until its checkpoint is there, and some reports longer; give the shares that it told."""
    shares: list[float] = []
    late: list[float] = []

    def report(share: float) -> None:
        shares.append(share)
        if checkpoint.exists():
            late.append(share)
        if len(late) > after:
            raise InterruptionError

    with pytest.raises(InterruptionError):
        run(name, checkpoint, seed=seed, on_progress=report)
    assert checkpoint.exists()
    return shares


KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from tests.methods.surgeon.test_checkpoint import run

torch.set_num_threads(1)
checkpoint = Path(sys.argv[2])


def stop(share):
    if checkpoint.exists():
        os.kill(os.getpid(), signal.SIGKILL)


run(sys.argv[1], checkpoint, on_progress=stop)
"""


@pytest.mark.parametrize("name", ["published", "ours"])
def test_an_evolution_that_was_killed_ends_where_it_would_have_ended(name: str, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    killed = subprocess.run([sys.executable, "-c", KILLED, name, str(checkpoint)], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]
    shares: list[float] = []
    resumed = run(name, checkpoint, on_progress=shares.append)
    told: list[float] = []
    assert_same_outcome(resumed, run(name, on_progress=told.append))
    assert shares[0] == told[0] == 0.0
    assert 1 < len(shares) < len(told) and shares[1:] == told[1 - len(shares) :], "what was done is not done again"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        "ours, smaller",
        "ours, to a budget",
        "ours, convolutions",
    ],
)
def test_an_evolution_that_was_interrupted_ends_where_it_would_have_ended(name: str, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    whole = run(name)
    for after in (0, 3):
        interrupted(name, checkpoint, after=after)
        assert_same_outcome(run(name, checkpoint), whole)
        assert not checkpoint.exists()


def test_an_evolution_may_be_interrupted_again_and_again(tmp_path: Path) -> None:
    checkpoint, whole = tmp_path / "checkpoint", run("published")
    begun = [interrupted("published", checkpoint, after=after)[1] for after in (1, 2)]
    assert begun == sorted(begun) and begun[0] < begun[-1], "it goes on from where it was"
    assert_same_outcome(run("published", checkpoint), whole)


def test_the_checkpoint_is_removed_in_the_end_and_changes_nothing(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    seen: list[bool] = []
    found = run("ours", checkpoint, on_progress=lambda share: seen.append(checkpoint.exists()))
    assert any(seen) and list(tmp_path.iterdir()) == []
    assert_same_outcome(found, run("ours"))


@pytest.mark.parametrize("name", ["ours"])
def test_the_checkpoint_of_another_evolution_is_not_taken_up(name: str, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    interrupted(name, checkpoint, seed=4)
    shares: list[float] = []
    found = run(name, checkpoint, on_progress=shares.append)
    told: list[float] = []
    assert_same_outcome(found, run(name, on_progress=told.append))
    assert shares == told, "from the start"


OTHERS: dict[str, Callable[[Path], Outcome]] = {
    "settings": lambda path: resize(
        network(12), digits(), as_ours(20, search=3.0, aim="balanced"), seed=3, latency=False, checkpoint=path
    ),
    "data": lambda path: resize(network(12), digits(299), CASES["ours"][2], seed=3, latency=False, checkpoint=path),
    "budget": lambda path: run("ours", path, budget=Budget(parameters=5000)),
}


@pytest.mark.parametrize("what", OTHERS)
def test_one_of_other_settings_networks_or_data_is_not_taken_up(what: str, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    expected = OTHERS[what](tmp_path / "another checkpoint")
    interrupted("ours", checkpoint)
    assert_same_outcome(OTHERS[what](checkpoint), expected)


@pytest.mark.parametrize("damage", ["cut off", "noise", "a folder"])
def test_a_checkpoint_that_cannot_be_read_is_one_clear_error(damage: str, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    interrupted("ours", checkpoint)
    content = checkpoint.read_bytes()
    checkpoint.unlink()
    if damage == "a folder":
        checkpoint.mkdir()
    else:
        checkpoint.write_bytes({"cut off": content[:-100], "noise": bytes(range(256)) * 9}[damage])
    with pytest.raises(ModelError, match=r"cannot read .*; remove .* to start over") as caught:
        run("ours", checkpoint)
    assert "\n" not in str(caught.value) and str(checkpoint) in str(caught.value)
    assert checkpoint.exists(), "what cannot be read is left as it is"


def test_a_file_of_something_else_is_not_taken_up(tmp_path: Path) -> None:
    checkpoint = save(network(4), tmp_path / "checkpoint.safetensors")
    assert_same_outcome(run("ours", checkpoint), run("ours"))


def test_a_folder_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(TopiaristError, match="cannot write"):
        run("ours", tmp_path / "nowhere" / "checkpoint")


def test_an_entry_has_all_that_came_before(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    interrupted("published", checkpoint)
    with safe_open(checkpoint, "pt") as file:
        header = json.loads(file.metadata()["surgeon"])
        names = set(file.keys())
    decisions = header["lineage"]["decisions"]
    assert decisions and len(header["branches"]) == 2
    assert {branch["steps"] for branch in header["branches"]} == {(1 + decisions[-1]["number"]) * 15}
    for number, branch in enumerate(header["branches"]):
        assert f"{number}/weights/output.weight" in names and f"{number}/probabilities" in names
        assert header["lineage"]["nodes"][branch["node"]]["accuracy"] == branch["accuracy"]


def written_and_read(make: Callable[[], nn.Module], path: Path) -> tuple[Branch, Branch]:
    """Return a branch with edits in it, and what a checkpoint makes of it."""
    data, whole = digits(), make()
    config = TrainConfig(epochs=6, batch_size=16, learning_rate=0.003)
    part = part_of(data, "train")
    branch = train_branch(BranchTraining(branch=Branch(model=whole), steps=20), TrainingSetup(data, config))
    edits = (
        GrowSpace(space="hidden0", by=3, seed=1),
        RemoveUnits(units={"hidden1": (0, 2)}, refit=True),
        DeepenNetwork(after="hidden1"),
        FactoriseLayer(layer="hidden0", rank=3),
    )
    branch = train_branch(
        BranchTraining(branch=edited(branch, edits, part.x[:2], part.x), steps=20), TrainingSetup(data, config)
    )
    checkpoint = SurgeonCheckpoint(path, "this one")
    lineage = Lineage(6)
    lineage.add(parent=None, kind="start", edit="", decision=0, begins=0, ends=0, parameters=1, widths=())
    checkpoint.write(CheckpointState([branch, branch], lineage, {"spent": 3}))
    state = checkpoint.read(whole)
    assert state is not None
    assert (state.lineage, state.strategy, len(state.branches)) == (lineage, {"spent": 3}, 2)
    assert SurgeonCheckpoint(path, "another").read(whole) is None
    return branch, state.branches[1]


@pytest.mark.parametrize("make", [network, unstackable])
def test_a_branch_that_was_read_is_the_one_that_was_written(make: Callable[..., nn.Module], tmp_path: Path) -> None:
    branch, read = written_and_read(lambda: make(12, 8), tmp_path / "checkpoint")
    assert same_weights(read.model, branch.model)
    for (edit, numbers), (other, others) in zip(
        plan_of(branch.model).steps(), plan_of(read.model).steps(), strict=True
    ):
        assert edit == other and numbers.keys() == others.keys()
        assert all(torch.equal(values, others[name]) for name, values in numbers.items())
    assert read.memory.keys() == branch.memory.keys()
    for name, known in branch.memory.items():
        assert read.memory[name].keys() == known.keys()
        assert all(torch.equal(read.memory[name][key], value) for key, value in known.items())
    assert torch.equal(read.probabilities, branch.probabilities)
    assert (read.node, read.steps, read.loss, read.accuracy) == (
        branch.node,
        branch.steps,
        branch.loss,
        branch.accuracy,
    )
    assert not read.model.training


def test_a_branch_that_was_read_goes_on_as_the_one_that_was_written(tmp_path: Path) -> None:
    branch, read = written_and_read(lambda: network(12, 8), tmp_path / "checkpoint")
    assert list(read.memory) == list(branch.memory)
    sample = part_of(digits(), "train").x[:2]
    one, other = (edited(each, (DeepenNetwork(after="hidden0.narrow"),), sample, None) for each in (branch, read))
    for name, known in one.memory.items():
        assert all(torch.equal(other.memory[name][key], value) for key, value in known.items()), name
