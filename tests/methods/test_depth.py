"""Within a budget, whole blocks go beside units, where the answers stay nearer so."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.surgery.residual_networks import Stacked
from topiarist import Budget, load, methods, resize, save
from topiarist.measurement.cost import count_macs
from topiarist.randomness import isolated
from topiarist.surgery import RemoveBlock
from topiarist.surgery.calibration import CalibrationBatches
from topiarist.surgery.choice.block_order import order_blocks
from topiarist.surgery.choice.distance import AnswerDistance
from topiarist.surgery.depth.blocks import blocks


class Tower(nn.Module):
    """A block of a norm and a perceptron; `strength` says how much it adds."""

    def __init__(self, width: int, hidden: int, strength: float) -> None:
        super().__init__()
        self.norm, self.first, self.second = nn.LayerNorm(width), nn.Linear(width, hidden), nn.Linear(hidden, width)
        nn.init.normal_(self.second.weight, std=strength)
        nn.init.zeros_(self.second.bias)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = x + self.second(torch.relu(self.first(self.norm(x))))
        return given


STRENGTHS = (0.5, 1e-4, 0.4, 2e-4)  # the second and the fourth block add next to nothing


def make() -> nn.Module:
    with isolated(0):
        towers: list[nn.Module] = [Tower(12, 24, strength) for strength in STRENGTHS]
        return Stacked(nn.Linear(6, 12), towers, nn.Linear(12, 3)).eval()


@pytest.fixture
def samples() -> Tensor:
    with isolated(1):
        return torch.randn(400, 6)


def removed(outcome: Any) -> list[str]:
    return [name for edit in outcome.plan.edits if isinstance(edit, RemoveBlock) for name in edit.blocks]


def resized(model: nn.Module, samples: Tensor, share: float, **settings: Any) -> Any:
    budget = Budget(macs=int(share * count_macs(model, samples[:1])))
    method = methods.Distinctiveness(**settings)
    return resize(model, None, method, budget=budget, calibration=samples, settling=0)


def test_blocks_that_add_nothing_are_given_up_first(samples: Tensor) -> None:
    model = make()
    found = blocks(model, samples[:2])
    distance = AnswerDistance(model, CalibrationBatches(samples, model, 1), 128)
    order = [block.name for block in order_blocks(model, list(found.values()), distance, lambda block: block.macs)]
    assert order[:2] == ["blocks.1", "blocks.3"] and sorted(order) == sorted(found)
    assert distance.of(model) == pytest.approx(0, abs=1e-6)


def test_blocks_that_add_nothing_go_and_the_answers_stay(samples: Tensor, tmp_path: Path) -> None:
    model = make()
    outcome = resized(model, samples, 0.56, depth=True)
    assert removed(outcome) == ["blocks.1", "blocks.3"]
    assert outcome.after.macs <= 0.56 * outcome.before.macs
    assert outcome.reasons[0] == "blocks passed over: 'blocks.1', 'blocks.3'"
    with torch.no_grad():
        torch.testing.assert_close(outcome.model(samples), model(samples), rtol=0, atol=0.02)
        loaded = load(save(outcome.model, tmp_path / "m.safetensors"), into=make())
        assert torch.equal(loaded(samples), outcome.model(samples))


@pytest.mark.slow
def test_without_the_setting_no_block_goes(samples: Tensor) -> None:
    assert not removed(resized(make(), samples, 0.56, depth=False))


@pytest.mark.slow
def test_blocks_beside_units(samples: Tensor) -> None:
    outcome = resized(make(), samples, 0.48, depth=True)
    kinds = [edit.kind for edit in outcome.plan.edits]
    assert kinds == ["remove_block", "remove"] and outcome.after.macs <= 0.48 * outcome.before.macs
    assert not any(name.startswith(tuple(removed(outcome))) for name in outcome.units)


@pytest.mark.slow
def test_ignored_layers_keep_their_block(samples: Tensor) -> None:
    model = make()
    method, budget = methods.Distinctiveness(depth=True), Budget(macs=int(0.7 * count_macs(model, samples[:1])))
    outcome = resize(model, None, method, budget=budget, calibration=samples, ignored="blocks.1.first", settling=0)
    assert "blocks.1" not in removed(outcome)


def test_a_network_that_answers_all_alike_is_infinitely_far(samples: Tensor) -> None:
    model = make()
    distance = AnswerDistance(model, CalibrationBatches(samples, model, 1), 128)
    nn.init.zeros_(model.get_parameter("head.weight"))
    assert distance.of(model) == float("inf")
