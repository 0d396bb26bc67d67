"""What the readers of spaces see of their units, for as many spaces as wanted in one pass over calibration data."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.dropout import _DropoutNd

from topiarist.surgery.calibration import CalibrationBatches, watch_readers
from topiarist.surgery.choice import evidence, reading_sums
from topiarist.surgery.choice.activity import Activity, activity_from
from topiarist.surgery.choice.selection import SelectionEvidence
from topiarist.surgery.refit.moments import Moments
from topiarist.tracing import Anatomy, Place, Space
from topiarist.tracing.steps import Step

NEARLY_ALWAYS = 0.95  # of all samples and positions
LAST_BITS = 16  # torch rounds differently at the end of a row
NEXT_TO = 0.01  # of the range between the bounds
PASSING = (
    *(nn.Identity, nn.Flatten, _DropoutNd, nn.Upsample),
    *(nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d),
    *(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d),
    *(nn.ZeroPad1d, nn.ZeroPad2d, nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReplicationPad1d, nn.ReplicationPad2d),
)
PASSING_OPERATIONS = frozenset(
    (
        *("view", "_unsafe_view", "clone", "permute", "transpose", "t", "squeeze", "unsqueeze", "mean", "avg_pool2d"),
        *("max_pool2d_with_indices", "_adaptive_avg_pool2d", "adaptive_max_pool2d", "upsample_nearest1d"),
        *("upsample_nearest2d", "upsample_bilinear2d"),
    )
)


@dataclass(frozen=True)
class Bounds:
    """The lowest and the highest value of an activation; `from_above`: only the highest saturates it."""

    lowest: float
    highest: float
    from_above: bool = False

    @property
    def nearly(self) -> tuple[float, float]:
        """Return the values below, and above, which a unit is next to a bound."""
        margin = NEXT_TO * (self.highest - self.lowest)
        return float("-inf") if self.from_above else self.lowest + margin, self.highest - margin


UNIT, SIGNED, CLIPPED = Bounds(0.0, 1.0), Bounds(-1.0, 1.0), Bounds(0.0, 6.0, from_above=True)
FUNCTIONS = {"sigmoid": UNIT, "hardsigmoid": UNIT, "tanh": SIGNED}
MODULES = {nn.Sigmoid: UNIT, nn.Hardsigmoid: UNIT, nn.Tanh: SIGNED, nn.Softsign: SIGNED, nn.ReLU6: CLIPPED}


def _bounds_seen(model: nn.Module, anatomy: Anatomy, space: Space, reader: Place) -> Bounds | None:
    """Return the bounds of what a layer reads of a space; None where there are none, or where they are not known.

    They are known through dropout, pooling, flattening and concatenation, and not behind a batch norm.
    """
    call = anatomy.calls[reader.module]
    writers = frozenset(place.module for place in (*space.producers, *space.passes))
    sources = call.step.inputs
    return _bounds_of(model, sources[0], writers) if call.count == 1 and sources else None


def _bounds_of(model: nn.Module, step: Step, writers: frozenset[str]) -> Bounds | None:
    """Return the bounds of what a step returns of units that some layers write."""
    joining = False
    if step.kind == "layer":
        module = model.get_submodule(step.name)
        passing = isinstance(module, PASSING)
        own = next((bounds for kind, bounds in MODULES.items() if isinstance(module, kind)), None)
        if isinstance(module, nn.Hardtanh) and own is None:
            own = Bounds(float(module.min_val), float(module.max_val))
    elif step.kind == "operation":
        passing, joining = step.name in PASSING_OPERATIONS, step.name == "cat"
        own = FUNCTIONS.get(step.name)
        if step.name == "hardtanh":  # also what relu6 is
            lowest, highest = float(step.settings["min_val"]), float(step.settings["max_val"])
            own = CLIPPED if (lowest, highest) == (0.0, 6.0) else Bounds(lowest, highest)
    else:
        return None
    if own is not None or not (passing or joining):
        return own
    sources = [source for source in step.inputs if _leads_to(model, source, writers)]
    known = {_bounds_of(model, source, writers) for source in (sources if joining else sources[:1])}
    return known.pop() if len(known) == 1 else None


def _leads_to(model: nn.Module, step: Step, writers: frozenset[str]) -> bool:
    """Return whether a step returns units that one of some layers wrote; what those read does not count."""
    waiting, known = [step], {step}
    while waiting:
        now = waiting.pop()
        if now.kind == "layer" and isinstance(model.get_submodule(now.name), (nn.Linear, _ConvNd)):
            if now.name in writers:
                return True
            continue
        new = [source for source in now.inputs if source not in known]
        known.update(new)
        waiting += new
    return False


@dataclass
class LayerReading:
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
        self.moments.add(reading_sums.activations(model, self.place, taken))
        convolution = isinstance(model.get_submodule(self.place.module), _ConvNd)
        values = taken.flatten(2) if convolution else taken.reshape(-1, taken.shape[-1], 1)
        positions = torch.from_numpy(self.place.positions).flatten(1).to(taken.device)
        self.lowest = torch.minimum(self.lowest.to(values), values.amin((0, 2))[positions].amin(1))
        self.highest = torch.maximum(self.highest.to(values), values.amax((0, 2))[positions].amax(1))
        if self.bounds is not None:
            lowest, highest = self.bounds.nearly
            near = (values <= lowest) | (values >= highest)
            self.bounded = self.bounded + near.sum((0, 2))[positions].sum(1)
        self.count += positions.shape[1] * values.shape[0] * values.shape[2]

    @property
    def judged(self) -> Tensor:
        """Return (3, n_units): which never vary but for rounding, are always 0, are nearly always next to a bound."""
        largest = torch.maximum(self.lowest.abs(), self.highest.abs())
        dead = self.highest - self.lowest <= LAST_BITS * torch.finfo(largest.dtype).eps * largest
        silent = (self.lowest == 0) & (self.highest == 0)
        saturated = torch.zeros_like(dead)
        if self.bounds is not None:
            saturated = torch.as_tensor(self.bounded) >= NEARLY_ALWAYS * self.count
        return torch.stack([dead, silent, saturated])


Readings = Mapping[str, LayerReading]


def read_spaces(
    model: nn.Module, anatomy: Anatomy, names: Iterable[str], batches: CalibrationBatches
) -> dict[str, Readings]:
    """Watch the readers of spaces, all in one pass; return, for each space, what each reader sees by its name."""
    read: dict[str, Readings] = {}
    watched: defaultdict[str, list[LayerReading]] = defaultdict(list)
    for name in names:
        space = anatomy[name]
        read[name] = {
            place.module: LayerReading(place, _bounds_seen(model, anatomy, space, place)) for place in space.readers
        }
        for path, reading in read[name].items():
            watched[path].append(reading)

    def remember(path: str, taken: Tensor) -> None:
        for reading in watched[path]:
            reading.add(model, taken)

    if watched:
        watch_readers(model, {path: anatomy.calls[path].count for path in watched}, batches, remember)
    return read


def activity_read(model: nn.Module, anatomy: Anatomy, readings: Readings) -> Activity | None:
    """Return what `activity_of` does, from readings that are there already; None where no one reads the space."""
    together = Moments()
    for reading in readings.values():
        together.include(reading.moments)
    return activity_from(model, anatomy, together, list(readings)) if readings else None


def evidence_read(model: nn.Module, anatomy: Anatomy, readings: Readings) -> SelectionEvidence | None:
    """Return what `evidence_of_whole` does with positions as samples; None where no one reads the space."""
    places = [reading.place for reading in readings.values()]
    groups = [
        (reading_sums.metric_root(model, together), readings[first.module].moments.covariances()[0])
        for together, first in evidence.same_readings(anatomy, places, places)
    ]
    return reading_sums.combined(reading_sums.of_units(root, spread) for root, spread in groups)


@dataclass(frozen=True)
class Health:
    """Units that do no work over the calibration data, by number.

    `dead` never vary, whatever the sample and the position, for none of the layers that read them; `silent` are those
    of them that are always 0. `saturated` lie within 1 % of the range of their activation from one of its bounds in at
    least 95 % of the cases (a ReLU6 only at 6); none are named where a reader sees them without known bounds.
    """

    dead: tuple[int, ...]
    silent: tuple[int, ...]
    saturated: tuple[int, ...]


def health_from(readings: Readings) -> Health:
    """Judge the units of a space by what all of its readers see; none are named where no one reads it."""
    if not readings:
        return Health((), (), ())
    judged = torch.stack([reading.judged for reading in readings.values()]).all(0)
    return Health(*(tuple(flags.nonzero().flatten().tolist()) for flags in judged))
