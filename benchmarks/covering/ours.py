"""What we make of a network: find its units, cut half of every free space, and ask whether the result can be used."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy
from torch import Tensor, nn

from benchmarks.covering.notebook import Notebook
from benchmarks.covering.onnx_files import compare_onnx
from benchmarks.covering.outputs import answers_of, count_parameters, one_line, relative_difference, shapes_of
from benchmarks.covering.records import Check, OurAttempt
from benchmarks.zoo import Entry, Inputs
from topiarist import anatomy, surgery
from topiarist.errors import ModelError
from topiarist.storage import load, save
from topiarist.surgery.proof_runs import outputs_without, references
from topiarist.surgery.proving import prove
from topiarist.tracing import Anatomy
from topiarist.tracing.running import sharing_copy

SAME = 1e-6  # of the largest number: the same weights in the same operations, in another layout of memory
SPACES_FELT = 4
OTHER_SEED = 1  # of the network that a file is loaded into: nothing of its own may be left


def every_second_unit(found: Anatomy) -> dict[str, list[int]]:
    """Name half of the units of every free space; the first unit stays."""
    named = {name: list(range(1, space.size, 2)) for name, space in found.free.items()}
    return {name: units for name, units in named.items() if units}


def differs_from_reference(model: nn.Module, inputs: Inputs, found: Anatomy, units: dict[str, list[int]]) -> float:
    """Return how far this very cut is from the original without the units, both with random weights.

    What was proven before the cut is that other units, the first half of each space, can go.
    """
    return prove(model, inputs, found, units)


def smallest_effect(model: nn.Module, inputs: Inputs, found: Anatomy) -> float | None:
    """Return how much of a change the proof must see: the smallest one that half of one space alone makes.

    Asked of a few spaces, from first to last. Where the change is no larger than the proof's limit, it shows nothing.
    """
    assert found.trace is not None
    nothing = numpy.zeros(len(found.trace.tracer.labels), bool)
    whole, (batch, *_) = references(model, inputs, found, nothing)
    changes = []
    halves = list(every_second_unit(found).items())
    for name, units in halves[:: -(-len(halves) // SPACES_FELT) or 1]:
        gone = nothing.copy()
        gone[found.spaces[name].units[units]] = True
        without = outputs_without(sharing_copy(whole), batch.inputs, found, gone, wide=batch.wide)
        changes.append(relative_difference(without, batch.expected))
    return min(changes, default=None)


def measure_ours(entry: Entry, place: Path) -> None:
    """Measure a network; findings are in the file as soon as they are made."""
    book = Notebook(OurAttempt(), place)
    with book.explaining():
        book.begin("make")
        model, inputs = entry.make()
        expected = answers_of(model, inputs)
        book.note(parameters_before=count_parameters(model))
        found = _find(book, model, inputs)
        book.begin("cut")
        found, units, cut = _cut(model, inputs, found)
        book.begin("run")
        answers = answers_of(cut, inputs)
        kept = shapes_of(answers) == shapes_of(expected)
        book.note(parameters_after=count_parameters(cut), shapes_kept=kept)
        if not kept:
            raise ValueError(f"output shapes {shapes_of(answers)} instead of {shapes_of(expected)}")
        _check(book, entry, model, cut, inputs, found, units, answers)


def _cut(model: nn.Module, inputs: Inputs, found: Anatomy) -> tuple[Anatomy, dict[str, list[int]], nn.Module]:
    """Cut half of what is free, with the proof; where it refuses, half of what can be proven."""
    try:
        units = every_second_unit(found)
        return found, units, surgery.remove(model, inputs, units=units, anatomy=found)
    except ModelError:
        found = surgery.proven(model, inputs, anatomy=found)
        units = every_second_unit(found)
        return found, units, surgery.remove(model, inputs, units=units, anatomy=found)


def _find(book: Notebook[OurAttempt], model: nn.Module, inputs: Inputs) -> Anatomy:
    """Find the anatomy and write down how long that took."""
    book.begin("anatomy")
    started = time.perf_counter()
    found = anatomy(model, inputs)
    seconds = time.perf_counter() - started
    free = len(found.free)
    book.note(anatomy_seconds=seconds, free_spaces=free, fixed_spaces=len(found.spaces) - free)
    return found


def _check(
    book: Notebook[OurAttempt],
    entry: Entry,
    model: nn.Module,
    cut: nn.Module,
    inputs: Inputs,
    found: Anatomy,
    units: dict[str, list[int]],
    answers: list[Tensor],
) -> None:
    """Ask whether the cut network can be saved and loaded, equals the reference, and can be exported."""
    book.begin("reload")
    book.note(reloaded=_reloaded(entry, cut, inputs, answers))
    book.begin("reference")
    try:
        distance = differs_from_reference(model, inputs, found, units)
        book.note(reference=Check(passed=True, note=f"{distance:.1e}"))
    except Exception as error:  # a finding, whatever it is
        book.note(reference=Check(passed=False, note=one_line(error)))
    book.begin("effect")
    book.note(felt=smallest_effect(model, inputs, found))
    book.begin("onnx")
    book.note(onnx=compare_onnx(model, cut, inputs))


def _reloaded(entry: Entry, cut: nn.Module, inputs: Inputs, answers: list[Tensor]) -> Check:
    """Save a cut network and load it into a fresh one with other weights."""
    try:
        with TemporaryDirectory() as folder:
            loaded = load(save(cut, Path(folder) / "cut.safetensors"), into=entry.make(seed=OTHER_SEED)[0])
        distance = relative_difference(answers_of(loaded, inputs), answers)
    except Exception as error:  # a finding, whatever it is
        return Check(passed=False, note=one_line(error))
    return Check(passed=distance <= SAME, note=f"{distance:.1e}")
