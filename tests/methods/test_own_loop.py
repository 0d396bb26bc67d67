"""A network with heads of its own and its own loss, score and fine-tuning, resized to a budget without any `Data`.

It finds discs in images as a detector does: a map of where a disc is, and a map of how large it is, both from a
U-shaped network whose encoder is read twice.
"""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from topiarist import Budget, resize
from topiarist.measurement.footprint import footprint
from topiarist.models.evaluation import evaluating
from topiarist.randomness import isolated

SIZE, SIDE = 48, 16


class DiscFinder(nn.Module):
    """Two levels with a skip connection, and two heads: `there` (logits) and `radius`, one value per pixel each."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.first = self.block(1, width)
        self.second = self.block(width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.last = self.block(2 * width, width)
        self.there = nn.Conv2d(width, 1, 1)
        self.radius = nn.Conv2d(width, 1, 1)

    @staticmethod
    def block(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        fine = self.first(images)
        coarse = self.up(self.second(functional.max_pool2d(fine, 2)))
        found = self.last(torch.cat([fine, coarse], dim=1))
        return {"there": self.there(found), "radius": self.radius(found)}


def discs(count: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return noisy images (count, 1, SIDE, SIDE), where the disc of each is, and its radius at its pixels."""
    random = torch.Generator().manual_seed(seed)
    places, radii = torch.rand(count, 2, generator=random) * 6 + 5, torch.rand(count, generator=random) * 3 + 2
    rows, columns = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    distances = ((rows - places[:, 0, None, None]) ** 2 + (columns - places[:, 1, None, None]) ** 2).sqrt()
    there = (distances < radii[:, None, None]).float()[:, None]
    images = there + 0.4 * torch.randn(there.shape, generator=random)
    return images, there, there * radii[:, None, None, None]


TRAINING, HELD = discs(SIZE, 0), discs(24, 1)


def own_loss(answers: dict[str, Tensor], there: Tensor, radius: Tensor) -> Tensor:
    """Return a soft Dice loss of the discs, and the squared error of the radius inside them."""
    found = answers["there"].sigmoid()
    dice = 1 - 2 * (found * there).sum() / (found.sum() + there.sum())
    return dice + 0.1 * ((answers["radius"] - radius).square() * there).sum() / there.sum()


def own_training(model: nn.Module, epochs: int = 5) -> None:
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(epochs):
        for rows in range(0, SIZE, 16):
            images, there, radius = (part[rows : rows + 16] for part in TRAINING)
            optimizer.zero_grad()
            own_loss(model(images), there, radius).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            optimizer.step()
    model.eval()


def overlap(model: nn.Module) -> float:
    """Return the intersection over the union of discs found and there."""
    images, there, _ = HELD
    with evaluating(model):
        found = model(images)["there"] > 0
    return float((found & (there > 0)).sum() / (found | (there > 0)).sum())


@pytest.fixture(scope="module")
def trained() -> DiscFinder:
    with isolated(0):
        model = DiscFinder()
    own_training(model, 20)
    return model


@pytest.mark.slow
def test_a_detector_keeps_to_its_budget_and_its_own_score(trained: DiscFinder) -> None:
    before = overlap(trained)
    assert before > 0.6
    weights = {name: value.clone() for name, value in trained.state_dict().items()}
    calls: list[int] = []

    def finetune(model: nn.Module) -> None:
        calls.append(sum(parameter.numel() for parameter in model.parameters()))
        own_training(model)

    whole = footprint(trained, TRAINING[0][:1]).macs
    batches = [TRAINING[0][:24], TRAINING[0][24:]]
    outcome = resize(
        trained,
        budget=Budget(macs=whole // 2, max_drop=0.1),
        calibration=batches,
        score=overlap,
        finetune=finetune,
        latency=False,
    )
    assert outcome.after.macs <= whole // 2 < outcome.before.macs == whole
    assert isinstance(outcome.model, DiscFinder) and calls and "accuracy" not in str(outcome)
    assert overlap(outcome.model) == pytest.approx(outcome.score[1]) and outcome.score[1] >= before - 0.1
    answers = outcome.model(HELD[0][:2])
    assert {name: tuple(each.shape) for name, each in answers.items()} == {
        "there": (2, 1, SIDE, SIDE),
        "radius": (2, 1, SIDE, SIDE),
    }
    assert all(torch.equal(value, weights[name]) for name, value in trained.state_dict().items())
