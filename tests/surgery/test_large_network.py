"""A residual network of 11 million parameters: seen quickly, cut at once, a fraction of its size on disk."""

import time
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.networks import NETWORKS, outputs
from tests.surgery.strategies import assert_same
from topiarist import save, surgery
from topiarist.randomness import generator
from topiarist.tracing import Inputs, anatomy


@pytest.fixture(scope="module")
def resnet() -> tuple[nn.Module, Inputs]:
    """Return the whole network; no test changes it."""
    return NETWORKS["resnet18"](0)


def random_half(model: nn.Module, example: Inputs) -> dict[str, torch.Tensor]:
    """Draw half of the units of every free space."""
    random = generator(0, "half")
    free = anatomy(model, example).free
    return {name: torch.randperm(space.size, generator=random)[: space.size // 2] for name, space in free.items()}


@pytest.mark.slow
def test_its_anatomy_takes_no_time(resnet: tuple[nn.Module, Inputs]) -> None:
    model, example = resnet
    assert sum(parameter.numel() for parameter in model.parameters()) > 11_000_000
    start = time.perf_counter()
    found = anatomy(model, example)
    assert time.perf_counter() - start < 5  # 0.1 s where nothing else runs
    assert len(found.free) == 12 and not found.opaque


@pytest.mark.slow
def test_half_of_all_its_units_go_at_once(resnet: tuple[nn.Module, Inputs], tmp_path: Path) -> None:
    model, example = resnet
    units = random_half(model, example)
    smaller = surgery.remove(model, example, units=units)
    with surgery.UnitMasks(model, example).without(units) as masked:
        assert_same(smaller, masked, example)
    assert all(bool(given.isfinite().all()) for given in outputs(smaller, example))
    whole, half = (save(each, tmp_path / f"{each is model}.safetensors").stat().st_size for each in (model, smaller))
    assert half < 0.3 * whole


@pytest.mark.slow
def test_it_widens_and_deepens_without_a_change(resnet: tuple[nn.Module, Inputs]) -> None:
    model, example = resnet
    wider = surgery.widen(model, example, space="conv1", by=32, generator=generator(0, "wider"))
    assert_same(surgery.deepen(wider, example, after="layers.0.0.bn1", batch_norm=True), model, example)
