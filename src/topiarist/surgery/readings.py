"""What the readers of spaces see of their units, for as many spaces as wanted in one pass over calibration data."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.models.evaluation import evaluating
from topiarist.randomness import isolated
from topiarist.surgery import layers
from topiarist.surgery.activity import Activity, as_array, follows_sigmoid
from topiarist.surgery.bounds import Bounds, bounds_seen
from topiarist.surgery.calibration import Batches
from topiarist.surgery.evidence import activations, metric_root, same_readings, stacked
from topiarist.surgery.moments import Moments
from topiarist.surgery.selection import Evidence, damped
from topiarist.surgery.watching import EnoughError, first_of, run_until_enough
from topiarist.tracing import Anatomy, Place

Hook = Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None]


@dataclass
class Reading:
    """What one reader sees of each unit: moments, extremes (n_units,), and how often it is next to a bound.

    Extremes and bounds are looked at in all positions, moments in enough of them.
    """

    place: Place
    bounds: Bounds | None
    moments: Moments = field(default_factory=Moments)
    lowest: Tensor = field(default_factory=lambda: torch.tensor(torch.inf))
    highest: Tensor = field(default_factory=lambda: torch.tensor(-torch.inf))
    bounded: Tensor | float = 0.0
    count: int = 0

    def add(self, model: nn.Module, taken: Tensor) -> None:
        """Add what the reader takes in one call."""
        seen = activations(model, self.place, taken)
        self.moments.add(seen, seen[:, :0])
        convolution = isinstance(model.get_submodule(self.place.module), _ConvNd)
        values = taken.flatten(2) if convolution else taken.reshape(-1, taken.shape[-1], 1)
        positions = torch.from_numpy(self.place.positions).flatten(1).to(taken.device)
        self.lowest = torch.minimum(self.lowest.to(values), values.amin((0, 2))[positions].amin(1))
        self.highest = torch.maximum(self.highest.to(values), values.amax((0, 2))[positions].amax(1))
        if self.bounds is not None:
            near = (values <= self.bounds.nearly_lowest) | (values >= self.bounds.nearly_highest)
            self.bounded = self.bounded + near.sum((0, 2))[positions].sum(1)
        self.count += positions.shape[1] * values.shape[0] * values.shape[2]


Readings = Mapping[str, Reading]


def read_spaces(model: nn.Module, found: Anatomy, names: Iterable[str], batches: Batches) -> dict[str, Readings]:
    """Watch the readers of spaces, all in one pass; give, for each space, what each reader sees by its name."""
    read: dict[str, Readings] = {}
    watched: defaultdict[str, list[Reading]] = defaultdict(list)
    for name in names:
        space = found.space(name)
        read[name] = {
            place.module: Reading(place, bounds_seen(model, found, space, place)) for place in space.consumers
        }
        for path, reading in read[name].items():
            watched[path].append(reading)
    if watched:
        watch_readers(model, watched, {path: found.calls[path].count for path in watched}, batches)
    return read


def watch_readers(
    model: nn.Module, watched: Mapping[str, Sequence[Reading]], calls: Mapping[str, int], batches: Batches
) -> None:
    """Run a network on all batches, each until the last of the watched layers is called."""
    left: list[str] = []

    def hook(path: str) -> Hook:
        def remember(_: nn.Module, taken: tuple[Any, ...], named: dict[str, Any]) -> None:
            if path in left:
                left.remove(path)
                for reading in watched[path]:
                    reading.add(model, first_of(taken, named))
            if not left:
                raise EnoughError

        return remember

    with ExitStack() as stack:
        for path in watched:
            module = model.get_submodule(path)
            stack.callback(module.register_forward_pre_hook(hook(path), with_kwargs=True).remove)
        stack.enter_context(evaluating(model))
        stack.enter_context(isolated(0))
        for args, kwargs in batches:
            left[:] = [path for path, count in calls.items() for _ in range(count)]
            run_until_enough(model, args, kwargs)


def activity_from(model: nn.Module, found: Anatomy, readings: Readings) -> Activity | None:
    """Give what `activity_of` gives, from readings that are there already; None where no one reads the space."""
    if not readings:
        return None
    together = Moments()
    for reading in readings.values():
        together.count += reading.moments.count
        together.feature_sum = together.feature_sum + reading.moments.feature_sum
        together.features = together.features + reading.moments.features
    together.target_sum, together.products = torch.zeros(0), torch.zeros(0)
    products, _, means, _ = together.central(centred=False)
    return Activity(
        products=as_array(products),
        means=as_array(means),
        shiftable=not any(layers.pads_with_zeros(model.get_submodule(path)) for path in readings),
        sigmoid=all(follows_sigmoid(model, found.calls[path].node) for path in readings),
    )


def evidence_from(model: nn.Module, found: Anatomy, readings: Readings) -> Evidence | None:
    """Give what `gather_evidence` gives for a network that is cut nowhere yet; None where no one reads the space."""
    spreads, needs, total = [], [], 0.0
    places = [reading.place for reading in readings.values()]
    for together, first in same_readings(found, places, places):
        spread, _ = readings[first.module].moments.covariances()
        root = metric_root(model, together)
        spreads.append(spread)
        needs.append(root @ spread)
        total += float(((root @ spread) * root).sum())
    return Evidence(damped(torch.stack(spreads)), stacked(needs), total) if spreads else None
