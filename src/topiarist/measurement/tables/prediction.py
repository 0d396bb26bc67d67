"""Predicts how long a network would take with other widths: the sum of its layers, and what no table covers.

    milliseconds ≈ scale · Σ layers + fixed + per_element · elements + per_detour · detoured + per_product · products

`elements` are the outputs of all layers, which norms, activations and pooling pass over; `detoured` are those of layers
at widths without a fast kernel, which are laid out anew on the way; `products` are multiplications that are not those
of the layers in the table, as in attention and recurrent layers. The coefficients
are fitted to the network at a few widths, timed as a whole. What is left of the error there is corrected by the ratio
measured / predicted, interpolated between the networks that were timed: where one was, its time is what was measured.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from scipy.optimize import lsq_linear
from torch import nn

from topiarist.errors import ModelError
from topiarist.measurement.budget import Runtime
from topiarist.measurement.runtimes import network_call, time_together
from topiarist.measurement.tables.layer_times import LayerTimes
from topiarist.measurement.tables.network_layers import NetworkLayer, evaluated, layers_of
from topiarist.measurement.tables.ranks import thin_milliseconds
from topiarist.measurement.tables.steps import Floats
from topiarist.models.copying import copied
from topiarist.models.evaluation import numbers_of
from topiarist.randomness import array_generator
from topiarist.surgery.choice.costs import Costs
from topiarist.surgery.width.change import change_widths
from topiarist.surgery.width.reexpressions import removal
from topiarist.tracing import Anatomy, Inputs

FRACTIONS = (0.75, 0.5, 0.25)  # of every width, at which a network is timed as a whole beside its full one
DRAWN = 2  # networks with widths between the least fraction and all, drawn one by one, that are timed too
LEAST_SCALE, MOST_SCALE = 0.5, 2.0  # of the sum of the layers: caches are warmer when one layer is timed alone
# Milliseconds of a layer's time in the table that are those of its profile. The layers of a depthwise network add up to
# 18 µs more than the network takes in ONNX Runtime, at any widths: 2 µs for each. Calls of torch are timed as they are.
MOST_OVERHEAD: dict[Runtime, float] = {"torch": 0.0, "onnx": 0.002, "onnx-int8": 0.002}
TRUST = 0.1  # in the table, beside one network that is timed: so much a scale other than 1 costs
Widths = Mapping[str, Any]  # whole numbers, or arrays of them


class LatencyModel:
    """How long a network takes on this machine, in a runtime and on some threads, for any widths of its free spaces.

    Parameters
    ----------
    model, anatomy, costs
        The network, which is left as it is, its anatomy, and its costs.
    example : tensor, sequence or mapping
        One sample.
    runtime : {"torch", "onnx", "onnx-int8"}
    threads : int
    table : LayerTimes, optional
        The times of layers; by default those of this machine.

    Attributes
    ----------
    observed : list of tuple
        The widths of networks that were timed as a whole, with their milliseconds; the full one first.
    """

    def __init__(
        self,
        model: nn.Module,
        anatomy: Anatomy,
        costs: Costs,
        example: Inputs,
        *,
        runtime: Runtime = "torch",
        threads: int = 1,
        table: LayerTimes | None = None,
    ) -> None:
        self.model, self.anatomy, self.costs, self.example = model, anatomy, costs, example
        self.runtime, self.threads = runtime, threads
        self.table = LayerTimes.on_this_machine(runtime, threads) if table is None else table
        self.layers: Sequence[NetworkLayer] = layers_of(model, anatomy, example, self.table)
        self.observed: list[tuple[dict[str, int], float]] = []
        self._known: dict[tuple[int, ...], float] = {}
        self._coefficients = numpy.array([1.0, 0.0, 0.0, 0.0, 0.0])
        self._corrections: tuple[Floats, Floats] = (numpy.ones(1), numpy.ones(1))
        self._device = numbers_of(model).device.type if runtime == "torch" else "cpu"
        self._whole = network_call(copied(model), example, runtime=runtime, threads=threads)
        self._time(trial_widths(costs.widths, slow=runtime != "torch"))

    @property
    def whole_ms(self) -> float:
        """The time of the whole network."""
        return self.observed[0][1]

    def milliseconds(self, widths: Widths) -> Any:
        """Return the time with some widths, whole numbers or arrays of them; spaces not named keep theirs."""
        found = self._uncorrected(widths)
        return found * numpy.interp(found, *self._corrections)

    def along(self, name: str, candidates: Sequence[int], widths: Mapping[str, int]) -> Any:
        """Return the times (n,) with several widths of one space, the others being what they are."""
        return self.milliseconds({**widths, name: numpy.asarray(candidates)})

    def observe(self, widths: Mapping[str, int]) -> float:
        """Time a network of some widths as a whole, and learn from it; it has the right shape and no trained weights.

        It is timed beside the whole network. If that takes longer than before, something else runs on the machine, and
        both times are corrected alike.
        """
        key = self._key(widths)
        if key not in self._known:
            self._time([widths])
        if key not in self._known:
            raise ModelError("the network's own code does not allow these widths")
        return self._known[key]

    def saved_by_rank(self, name: str, rank: int) -> float:
        """Return the milliseconds that a layer of the whole network saves as two thin ones; 0 where no table has it.

        One more layer costs its share of the network's fixed time.
        """
        full, scale, fixed = self.costs.widths, self._coefficients[0], self._coefficients[1]
        saved = 0.0
        for layer in self.layers:
            if layer.name == name:
                inputs, outputs = evaluated(layer.inputs, full), evaluated(layer.outputs, full)
                thin = thin_milliseconds(layer, inputs, outputs, rank, self.table)
                saved += scale * (layer.milliseconds(full) - thin) - layer.times * fixed / len(self.layers)
        return float(saved)

    def time_beside(self, network: nn.Module) -> float:
        """Return the milliseconds of any network, timed beside the whole one as `observe` does."""
        call = network_call(copied(network), self.example, runtime=self.runtime, threads=self.threads)
        whole, found = time_together([self._whole, call], threads=self.threads, device=self._device)
        return found * self.whole_ms / whole

    def _time(self, several: Sequence[Mapping[str, int]]) -> None:
        """Time networks as a whole, beside the full one, and fit the coefficients again."""
        calls, made = [self._whole], [dict(self.costs.widths)]
        for widths in several:
            if (network := skeleton(self.model, self.anatomy, widths)) is not None:
                calls.append(network_call(network, self.example, runtime=self.runtime, threads=self.threads))
                made.append({**self.costs.widths, **widths})
        times = time_together(calls, threads=self.threads, device=self._device)
        busy = times[0] / self.whole_ms if self.observed else 1.0
        for widths, milliseconds in zip(made, times, strict=True):
            if self._key(widths) not in self._known:
                self._known[self._key(widths)] = milliseconds / busy
                self.observed.append((widths, milliseconds / busy))
        self._fit()

    def _features(self, widths: Widths) -> Any:
        """Return what the coefficients are for (5, …): ms of layers, 1, elements, detoured ones, products."""
        full = {**self.costs.widths, **widths}
        layers = sum((layer.milliseconds(full) for layer in self.layers), 0.0)
        elements = sum((layer.elements(full) for layer in self.layers), 0.0)
        detoured = sum((layer.detoured(full) for layer in self.layers), 0.0)
        covered = sum((layer.products(full) for layer in self.layers), 0.0)
        products = numpy.maximum(self.costs.macs(full) - numpy.asarray(covered), 0.0)
        return numpy.array(numpy.broadcast_arrays(layers, 1.0, elements, detoured, products), float)

    def _uncorrected(self, widths: Widths) -> Any:
        return numpy.tensordot(self._coefficients, self._features(widths), 1)

    def _fit(self) -> None:
        """Fit the coefficients to relative errors, and what is left as a ratio."""
        features = numpy.array([self._features(widths) for widths, _ in self.observed])
        times = numpy.array([milliseconds for _, milliseconds in self.observed])
        relative = features / times[:, None]
        units = numpy.where(relative.max(axis=0) > 0, relative.max(axis=0), 1.0)  # so that all are of about 1
        rows = numpy.vstack([relative / units, [TRUST, 0, 0, 0, 0]])
        wanted = numpy.append(numpy.ones(len(times)), TRUST * units[0])
        overhead = MOST_OVERHEAD[self.runtime] * sum(layer.times for layer in self.layers) * units[1]
        bounds = [LEAST_SCALE * units[0], -overhead, 0, 0, 0], [MOST_SCALE * units[0], *[numpy.inf] * 4]
        used = relative.any(axis=0)
        self._coefficients = numpy.where(used, lsq_linear(rows, wanted, bounds).x / units, 0.0)
        found = features @ self._coefficients
        order = numpy.argsort(found, kind="stable")
        self._corrections = found[order], (times / found)[order]

    def _key(self, widths: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(int(widths.get(name, size)) for name, size in self.costs.widths.items())


def skeleton(model: nn.Module, anatomy: Anatomy, widths: Mapping[str, int]) -> nn.Module | None:
    """Return a copy of a network with the first units of each space: enough to be timed.

    None says that the network's own code does not allow these widths.
    """
    changes = {
        name: removal(space, tuple(range(widths[name], space.size)))
        for name, space in anatomy.free.items()
        if widths.get(name, space.size) < space.size
    }
    network = copied(model).eval()
    try:
        if changes:
            change_widths(network, anatomy, changes, structure_only=True)
    except ModelError:
        return None
    return network


def trial_widths(full: Mapping[str, int], *, slow: bool) -> list[dict[str, int]]:
    """Return the widths of the networks that are timed as a whole: some with all widths alike, some with any."""
    random = array_generator(0, "widths to time")
    alike = [{name: max(1, round(each * size)) for name, size in full.items()} for each in FRACTIONS]
    least = {name: max(1, round(FRACTIONS[-1] * size)) for name, size in full.items()}
    drawn = [{name: int(random.integers(least[name], size + 1)) for name, size in full.items()} for _ in range(DRAWN)]
    return [*alike[1:], *drawn] if slow else [*alike, *drawn]  # an export takes seconds
