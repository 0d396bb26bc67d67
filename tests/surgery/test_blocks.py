"""Residual blocks are found, and a network without them computes what it does with their inputs passed on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.networks import NETWORKS, built, outputs
from tests.surgery.residual_networks import RESIDUAL, PreActivation, Stacked, pooled, residual_cnn
from tests.surgery.samples import more
from tests.surgery.strategies import untouched
from topiarist import load, save, surgery
from topiarist.errors import ModelError
from topiarist.measurement.cost import count_macs
from topiarist.models.evaluation import count_parameters
from topiarist.models.passing import PassedBlock
from topiarist.tracing import anatomy

KEPT = {"encoder, norms last": "norm2"}


@contextmanager
def passed_on(model: nn.Module, names: list[str], kept: str | None = None) -> Iterator[None]:
    """Let blocks return what they read, behind a norm of theirs, in the place of what they compute."""

    def hook(block: nn.Module, args: Any, kwargs: Any, given: Any) -> Any:
        x = args[0] if args else kwargs["hidden"]
        x = x if kept is None else block.get_submodule(kept)(x)
        return x if isinstance(given, Tensor) else type(given)([x, *given[1:]])

    handles = [model.get_submodule(name).register_forward_hook(hook, with_kwargs=True) for name in names]
    yield
    for handle in handles:
        handle.remove()


@pytest.mark.parametrize("name", RESIDUAL)
def test_without_a_block_its_input_is_passed_on(name: str) -> None:
    make, names = RESIDUAL[name]
    model, x = make(0)
    found = surgery.blocks(model, x)
    assert list(found.removable) == names
    for gone in (names[:1], names[1:]):
        with untouched(model):
            cut = surgery.remove_block(model, x, block=gone)
        with passed_on(model, gone, KEPT.get(name)), torch.no_grad():
            expected = model(x)
        with torch.no_grad():
            torch.testing.assert_close(cut(x), expected, rtol=0, atol=1e-10)
        assert type(cut) is type(model)
        assert count_parameters(model) - count_parameters(cut) == sum(found[each].parameters for each in gone)
        assert count_macs(model, x[:1]) - count_macs(cut, x[:1]) == sum(found[each].macs for each in gone)
        kept = {key for key in model.state_dict() if not any(key.startswith(f"{each}.") for each in gone)}
        assert kept <= set(cut.state_dict()) <= set(model.state_dict())


@pytest.mark.parametrize("name", ["residual", "encoder, norms last", "tuples", "convnext"])
def test_a_network_without_blocks_is_saved_and_loaded_into_a_fresh_one(name: str, tmp_path: Path) -> None:
    make, names = RESIDUAL[name]
    model, x = make(0)
    cut = surgery.remove_block(model, x, block=names[0])
    path = save(cut, tmp_path / "m.safetensors")
    fresh, _ = make(1)
    loaded = load(path, into=fresh)
    assert all(torch.equal(one, other) for one, other in zip(outputs(loaded, x), outputs(cut, x), strict=True))
    plan = surgery.plan_of(cut)
    again = surgery.Plan.from_json(plan.to_json())
    assert again == plan
    assert torch.equal(outputs(surgery.apply(again, model, x), x)[0], outputs(cut, x)[0])


@pytest.mark.parametrize("name", ["residual", "encoder, norms last"])
def test_units_go_from_what_is_left(name: str) -> None:
    make, names = RESIDUAL[name]
    model, x = make(0)
    cut = surgery.remove_block(model, x, block=names[1])
    found = anatomy(cut, x)
    assert not any(
        f"{place.module}.".startswith(f"{names[1]}.") for each in found.free.values() for place in each.readers
    )
    space = next(iter(found.free.values()))
    smaller = surgery.remove(cut, x, units={space.name: [0]}, anatomy=found)
    assert [edit.kind for edit in surgery.plan_of(smaller)] == ["remove_block", "remove"]
    assert count_parameters(smaller) < count_parameters(cut)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["residual", "pre-activation", "encoder, norms first"])
def test_calibration_data_make_up_for_a_block(name: str) -> None:
    make, names = RESIDUAL[name]
    model, x = make(0)
    samples = more(x, 256)
    (wanted,) = outputs(model, samples)

    def lost(network: nn.Module) -> float:
        return float(functional.mse_loss(outputs(network, samples)[0], wanted))

    bare = surgery.remove_block(model, x, block=names[0])
    refitted = surgery.remove_block(model, x, block=names[0], calibration=samples, settling=0)
    settled = surgery.remove_block(model, x, block=names[0], calibration=samples, settling=800)
    assert lost(settled) < lost(refitted) < 0.8 * lost(bare)
    assert [edit.kind for edit in surgery.plan_of(settled)] == ["remove_block", "settle"]
    replayed = surgery.apply(surgery.plan_of(settled), model, x)
    assert torch.equal(outputs(replayed, x)[0], outputs(settled, x)[0])
    with pytest.raises(ModelError, match="no numbers for its refit: pass calibration data"):
        surgery.apply(surgery.Plan.from_json(surgery.plan_of(refitted).to_json()), model, x)


def test_optimizer_state_follows() -> None:
    model, x = RESIDUAL["encoder, norms last"][0](0)
    optimizer = torch.optim.Adam(model.parameters())
    model(x).square().mean().backward()
    optimizer.step()
    cut = surgery.remove_block(model, x, block="1.layers.1")
    moved = surgery.transplant(optimizer, model, cut)
    old = optimizer.state[model.get_parameter("1.layers.1.norm2.weight")]["exp_avg"]
    assert torch.equal(moved.state[cut.get_parameter("1.layers.1.norm2.weight")]["exp_avg"], old)
    assert len(moved.state) == len(list(cut.parameters()))


class Downsampled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.shortcut = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.inner(x) + self.shortcut(x)
        return given


class Doubled(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x) + x


class Rectified(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + super().forward(x))


class Swapped(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(0, 1).reshape(x.shape) + super().forward(x)


class Talkative(nn.Linear):
    def forward(self, x: Tensor) -> Any:
        changed = super().forward(x)
        return x + changed, changed


class Twice(nn.Module):
    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.block(self.block(x))
        return given


class First(nn.Module):
    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.block(x)[0]
        return given


class Plus(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Twice(Plus(4, 4)), "it runs 2 times"),
        (lambda: First(Talkative(4, 4)), "it returns more than its input with something added"),
        (lambda: nn.Sequential(nn.Linear(4, 4), Downsampled()), "its shortcut is not its input as it is"),
        (lambda: nn.Sequential(nn.Linear(4, 4), Doubled(4, 4)), "its input is in its result more than once"),
        (lambda: nn.Sequential(nn.Linear(4, 4), Rectified(4, 4)), "'relu' follows its addition"),
        (lambda: nn.Sequential(nn.Linear(4, 4), Swapped(4, 4)), "its input is in its result at other positions"),
    ],
)
def test_what_only_looks_like_a_block_is_refused_with_the_reason(make: Any, reason: str) -> None:
    model, x = built(make, (4, 4), seed=0)
    ((name, block),) = surgery.blocks(model, x).items()
    assert reason in block.reason and reason in str(surgery.blocks(model, x))
    with untouched(model), pytest.raises(ModelError, match=f"cannot remove the block '{name}': .*{reason}"):
        surgery.remove_block(model, x, block=name)


def test_a_block_that_changes_the_shape_is_refused() -> None:
    model, x = built(residual_cnn, (2, 3, 6, 6), seed=0)
    with pytest.raises(ModelError, match=r"'blocks.2': it reads 5×6×6 and returns 7×3×3 per sample"):
        surgery.remove_block(model, x, block="blocks.2")


def test_bad_names_are_refused_in_one_line() -> None:
    model, x = built(residual_cnn, (2, 3, 6, 6), seed=0)
    with pytest.raises(ModelError, match=r"^there is no residual block 'blocks.9': known are blocks.0, .*blocks.3$"):
        surgery.remove_block(model, x, block="blocks.9")
    edit = surgery.RemoveBlock(blocks={"blocks.0": surgery.Passage(takes=("y",))})
    with pytest.raises(ModelError, match="its input becomes its result in another way"):
        surgery.apply(surgery.Plan((edit,)), model, x)


@pytest.mark.parametrize("name", ["inception", "lstm", "u-net", "cascade"])
def test_networks_without_residual_blocks_have_none(name: str) -> None:
    found = surgery.blocks(*NETWORKS[name](0))
    assert not found and str(found) == "no residual blocks"


class Counting(Stacked):
    """A network that reads more of its blocks than what they return."""

    def forward(self, x: Tensor) -> Tensor:
        given = super().forward(x)
        return given * self.blocks[0].get_parameter("conv1.weight").mean()


def test_a_block_that_other_code_reads_is_refused_by_the_proof() -> None:
    model, x = built(
        lambda: Counting(nn.Conv2d(3, 5, 3), [PreActivation(5), PreActivation(5)], pooled(5, 4)), (2, 3, 6, 6), seed=0
    )
    with untouched(model), pytest.raises(ModelError, match=r"without 'blocks.0', the network's own code fails"):
        surgery.remove_block(model, x, block="blocks.0")


def test_what_stands_in_the_place_of_a_block_answers_for_its_attributes() -> None:
    model, x = RESIDUAL["encoder, norms first"][0](0)
    passed = surgery.remove_block(model, x, block="1.layers.0").get_submodule("1.layers.0")
    assert isinstance(passed, PassedBlock) and not list(passed.parameters())
    assert vars(passed)["norm_first"] is True and vars(passed)["self_attn"].batch_first is True


def test_modes_and_frozen_layers_stay() -> None:
    model, x = RESIDUAL["residual"][0](0)
    model.train()
    model.stem.requires_grad_(False)
    cut = surgery.remove_block(model, x, block="blocks.1", calibration=more(x, 64), settling=0)
    assert all(module.training for module in cut.modules())
    assert not any(own.requires_grad for own in cut.get_submodule("stem").parameters())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["residual", "encoder, norms last", "tuples"])
def test_onnx_runtime_computes_the_same(name: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from tests.surgery.test_onnx import assert_exported  # that file needs the extra

    make, names = RESIDUAL[name]
    model, x = make(0)
    assert_exported(surgery.remove_block(model, x, block=names[1]), x, tmp_path)
