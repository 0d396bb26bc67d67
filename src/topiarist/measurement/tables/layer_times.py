"""The table: how long layers take against their widths; measured where it is asked for, and kept in a file."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

import numpy
from pydantic import Field, ValidationError

from topiarist.data.readers.catalogue import cache_folder
from topiarist.errors import TopiaristError
from topiarist.files import write_atomically
from topiarist.measurement.budget import Runtime
from topiarist.measurement.tables.geometry import Geometry, axis_grid
from topiarist.measurement.tables.machine import Machine, this_machine
from topiarist.measurement.tables.onnx_layers import OnnxLayers
from topiarist.measurement.tables.steps import BLOCK, PROBED, Axis, Steps, Surface, find_steps, probed_block
from topiarist.measurement.tables.torch_layers import Point, TorchLayers
from topiarist.settings import Record

FORMAT = 1  # of the cached files: others are measured again
SLOW_SECONDS = 0.004  # of one call, from which on a coarse grid is timed
Widths = tuple[int, int]


class LayerTimer(Protocol):
    """Times layers."""

    def seconds(self, points: Sequence[Point]) -> list[float]:
        """Return how long layers with so many inputs and outputs take."""
        ...


class TableFile(Record):
    """The times of one machine as a file: by geometry, and by widths such as "64,128"."""

    format: int
    machine: dict[str, str | int | None]
    seconds: dict[str, dict[str, float]] = Field(default_factory=dict)


class LayerTimes:
    """Times of layers in a runtime on some threads, measured the first time that they are asked for.

    Parameters
    ----------
    timer : LayerTimer
        What measures.
    path : Path, optional
        The file that keeps what was measured; one that is damaged, or of another machine, counts as empty.
    machine : Machine, optional
        What the file's times belong to.
    """

    def __init__(self, timer: LayerTimer, path: Path | None = None, machine: Machine | None = None) -> None:
        self.timer, self.path, self.machine = timer, path, machine
        self.known: dict[str, dict[Widths, float]] = self._read()
        self.measured = 0  # points, by this object
        self._surfaces: dict[tuple[str, tuple[int, ...], tuple[int, ...]], Surface] = {}

    @classmethod
    def on_this_machine(cls, runtime: Runtime, threads: int) -> "LayerTimes":
        """Return the table of this machine, kept in the folder of cached files."""
        timer: LayerTimer = (
            TorchLayers(threads) if runtime == "torch" else OnnxLayers(threads, int8=runtime == "onnx-int8")
        )
        machine = this_machine(runtime, threads)
        return cls(timer, cache_folder() / "latency" / machine.file_name, machine)

    def surface(self, geometry: Geometry, inputs: int, outputs: int, *, free: tuple[bool, bool]) -> Surface:
        """Return the times of a layer up to its full widths; an input or output width that is not free stays."""
        slow = self._at(geometry, [(inputs, outputs)])[inputs, outputs] > SLOW_SECONDS
        across = geometry.grouping == "per unit"  # the input width follows from the output width
        rows = axis_grid(inputs, coarse=slow) if free[0] and not across else [inputs]
        columns = axis_grid(outputs, coarse=slow) if free[1] else [outputs]
        key = geometry.key, tuple(rows), tuple(columns)
        if key not in self._surfaces:
            self._surfaces[key] = self._measure(geometry, rows, columns)
        return self._surfaces[key]

    def _measure(self, geometry: Geometry, rows: list[int], columns: list[int]) -> Surface:
        """Time a layer on a grid, and along each axis that is free the remainders of one block."""
        inputs, outputs = rows[-1], columns[-1]
        probed_rows = _probed(inputs) if len(rows) > 1 else []
        probed_columns = _probed(outputs) if len(columns) > 1 else []
        grid = [(row, column) for row in rows for column in columns]
        probes = [(row, outputs) for row in probed_rows] + [(inputs, column) for column in probed_columns]
        found = self._at(geometry, [*grid, *probes])
        return Surface(
            Axis(rows, _steps({row: found[row, outputs] for row in probed_rows})),
            Axis(columns, _steps({column: found[inputs, column] for column in probed_columns})),
            numpy.array([[found[row, column] for column in columns] for row in rows]),
        )

    def _at(self, geometry: Geometry, widths: Iterable[Widths]) -> dict[Widths, float]:
        """Return the times at some widths, those near that a layer can have; measure what is not known."""
        real = {}
        for inputs, outputs in widths:
            near = geometry.outputs_at(outputs)
            real[inputs, outputs] = geometry.inputs_at(inputs, near), near
        known = self.known.setdefault(geometry.key, {})
        missing = sorted(set(real.values()) - known.keys())
        if missing:
            found = self.timer.seconds([(geometry, *point) for point in missing])
            known.update(zip(missing, found, strict=True))
            self.measured += len(missing)
            self._write()
        return {asked: known[point] for asked, point in real.items()}

    def _read(self) -> dict[str, dict[Widths, float]]:
        if self.path is None or not self.path.is_file():
            return {}
        try:
            found = TableFile.model_validate_json(self.path.read_bytes())
            same = found.format == FORMAT and found.machine == self._machine()
            return {key: _from_text(points) for key, points in found.seconds.items()} if same else {}
        except (OSError, ValidationError, ValueError):
            return {}

    def _write(self) -> None:
        """Write what is known, with what others wrote meanwhile; a folder that cannot be written to is no obstacle."""
        if self.path is None:
            return
        for key, points in self._read().items():
            self.known[key] = {**points, **self.known.get(key, {})}
        seconds = {key: {f"{i},{o}": time for (i, o), time in points.items()} for key, points in self.known.items()}
        content = TableFile(format=FORMAT, machine=self._machine(), seconds=seconds).model_dump_json()
        with suppress(OSError, TopiaristError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, content.encode())

    def _machine(self) -> dict[str, str | int | None]:
        return {} if self.machine is None else asdict(self.machine)


def _probed(width: int) -> list[int]:
    """Return the widths that show the steps of an axis: a block's ends, and some remainders."""
    start = probed_block(width)
    return [] if start is None else [start, *(start + each for each in PROBED), start + BLOCK]


def _steps(times: Mapping[int, float]) -> Steps:
    return find_steps(times, min(times)) if times else Steps()


def _from_text(points: Mapping[str, float]) -> dict[Widths, float]:
    found = {}
    for text, seconds in points.items():
        inputs, outputs = text.split(",")
        if not 0 < seconds < float("inf"):
            raise ValueError(f"a time is above 0; found {seconds}")
        found[int(inputs), int(outputs)] = seconds
    return found
