"""Small tasks to rightsize networks for, and a plan that is smaller than that of any effort."""

from dataclasses import replace
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from topiarist.data import Data
from topiarist.models import mlp
from topiarist.randomness import array_generator, generator
from topiarist.rightsizing import EFFORTS, Rightsizing, preparation, relearning, rightsize, teaching
from topiarist.rightsizing.planning import WorkPlan, full_plan
from topiarist.training.tables import boosting

SMALL_PLAN = replace(EFFORTS["quick"], folds=2, seeds=2, epochs=6, finetuning_epochs=8, ratios=(4, 8), finer=0)


def use_small_plan(patch: pytest.MonkeyPatch) -> None:
    """Let a quick effort take a second."""
    patch.setitem(EFFORTS, "quick", SMALL_PLAN)
    patch.setattr(preparation, "PROBE_SECONDS", 0.001)
    use_small_teachers(patch)


def use_small_teachers(patch: pytest.MonkeyPatch) -> None:
    """Let the teachers of tables be a few networks and trees."""
    for module, name in ((teaching, "REPEATED"), (relearning, "LAST")):
        patch.setattr(module, name, teaching.REPEATED.model_copy(update={"folds": 2, "epochs": 15}))
    patch.setattr(boosting, "ITERATIONS", 5)


def plan_little() -> None:
    """Let a quick effort take a second in a process that ends soon."""
    use_small_plan(pytest.MonkeyPatch())


def blobs(samples: int = 180, classes: int = 3, *, apart: float = 3.0, **options: Any) -> Data:
    """Return clouds of points; 0 apart, the labels have nothing to do with them."""
    random = array_generator(1, "blobs")
    labels = numpy.arange(samples) % classes
    centres = apart * random.normal(size=(classes, 4))
    return Data.from_arrays(
        centres[labels] + random.normal(size=(samples, 4)), labels, **{"name": "blobs", "scaling": "zscore", **options}
    )


def small_network(seed: int = 0, *, classes: int = 3, **options: Any) -> nn.Module:
    """Return a network for the clouds that takes little time."""
    return mlp([4, 32, 16, classes], generator=generator(seed, "small network"), **options)


def shrunk(data: Data, model: Any = small_network, **settings: Any) -> Rightsizing:
    """Rightsize with as little work as may be."""
    return rightsize(data, model, **{"effort": "quick", "methods": ("distinctiveness",), **settings})


def planned(epochs: int, *, trainings: int) -> WorkPlan:
    """Return the plan of a quick effort with other epochs and trainings."""
    full = full_plan(EFFORTS["quick"], ["distinctiveness"], design="refitted", folds=2, trained=False)
    return replace(full, finetuning_epochs=epochs, trainings=trainings)


def weights_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return copies of all tensors of a network."""
    return {name: value.clone() for name, value in model.state_dict().items()}


def same_weights(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """Return whether tensors are equal to the last bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def without_times(record: Any) -> Any:
    """Return a record without what a clock said."""
    if isinstance(record, dict):
        timed = {"seconds", "latency_ms", "latency", "speed", "sentence", "onnx_latency", "onnx_latency_ms"}
        return {name: without_times(value) for name, value in record.items() if name not in timed}
    return [without_times(value) for value in record] if isinstance(record, list) else record
