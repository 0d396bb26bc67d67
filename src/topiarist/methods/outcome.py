"""The network that one method made: what it became, why, and what it was and is worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from topiarist.errors import ModelError
from topiarist.evolution.lineage import Lineage
from topiarist.files import JsonObject
from topiarist.measurement import Int8Export, Measurement, export_int8
from topiarist.methods.job import Job
from topiarist.notebooks import html_table
from topiarist.storage.trial import RawSamples
from topiarist.surgery import Plan, plan_of
from topiarist.tracing.running import Args, Kwargs
from topiarist.training import History

RANGES_FROM = 512  # calibration samples, as many as `export_onnx` takes of a training part


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The new network, and what was decided and why.

    Attributes
    ----------
    model : nn.Module
        The new network, of the class of the old one.
    plan : Plan
        The edits that made it, as data.
    before, after : Measurement
        The old and the new network on the test part, which no decision ever saw; without data, quality is NaN.
    units : mapping
        The width of each space that could be cut, before and after.
    score : tuple of float
        What decisions were based on, before and after; NaN where there was nothing to score by.
    reasons : tuple of str
    histories : tuple of History
        One training per round.
    lineage : Lineage or None
        The record of an evolution, where there was one.
    """

    job: Job = field(repr=False)
    model: nn.Module
    reasons: tuple[str, ...] = ()
    histories: tuple[History, ...] = ()
    lineage: Lineage | None = None

    @cached_property
    def plan(self) -> Plan:
        """The edits that made the network."""
        return new_edits(self.job.whole, self.model)

    @property
    def before(self) -> Measurement:
        """The network before."""
        return self.job.before

    @cached_property
    def after(self) -> Measurement:
        """The network after."""
        return self.job.measured(self.model)

    @cached_property
    def score(self) -> tuple[float, float]:
        """The score before and after."""
        return self.job.whole_score, self.job.scored(self.model)

    @cached_property
    def units(self) -> Mapping[str, tuple[int, int]]:
        """The width of each space before and after; none of a network that cannot be traced, and was not cut."""
        try:
            before = self.job.widths
            after = self.plan.widths_after(before)
            if after is None:
                after = {name: space.size for name, space in self.job.request(self.model).anatomy.spaces.items()}
            return {name: (size, after[name]) for name, size in before.items() if name in after}
        except ModelError:
            return {}

    def export_int8(self, path: str | Path) -> Int8Export:
        """Write the new network as an ONNX file of 8 bits, with ranges from the data that the cut was calibrated on.

        See `topiarist.export_int8`; files are timed on as many threads as the budget's latency.
        """
        job = self.job
        if job.data is not None:
            return export_int8(self.model, path, data=job.data, threads=job.threads)
        batches: list[Args | Kwargs] = []
        seen = 0
        for args, kwargs in job.request().batches.some(RANGES_FROM):
            batches.append(kwargs or args)
            seen += max(len(leaf) for leaf in tree_leaves(batches[-1]) if isinstance(leaf, Tensor) and leaf.ndim)
            if seen >= RANGES_FROM:
                break
        return export_int8(self.model, path, samples=_together(batches), threads=job.threads)

    def __str__(self) -> str:
        """Return what changed, in one line."""
        parts = [f"{name} {before} → {after}{unit}" for name, before, after, unit in self._changes()]
        if self.after.samples:
            parts[-1] += f" of {self.after.samples:,} test samples"
        return ", ".join(parts)

    def _changes(self) -> list[tuple[str, str, str, str]]:
        """Return what was measured, before and after, and its unit."""
        before, after = self.before, self.after
        changes = [
            ("parameters", f"{before.parameters:,}", f"{after.parameters:,}", ""),
            ("multiply-accumulates", f"{before.macs:,}", f"{after.macs:,}", ""),
            ("file", f"{before.file_kb:,.1f}", f"{after.file_kb:,.1f}", " KB"),
        ]
        if before.latency_ms is not None and after.latency_ms is not None:
            changes.append(("latency", f"{before.latency_ms:.3g}", f"{after.latency_ms:.3g}", " ms"))
        if after.samples:
            changes.append((after.primary, shown_quality(before), shown_quality(after), ""))
        return changes

    def _repr_html_(self) -> str:
        rows = [
            {"": f"{name},{unit}" if unit else name, "before": before, "after": after}
            for name, before, after, unit in self._changes()
        ]
        rows += [
            {"": f"units of {name}", "before": f"{before:,}", "after": f"{after:,}"}
            for name, (before, after) in self.units.items()
            if before != after
        ]
        judged = [f"{self.after.primary}: of {self.after.samples:,} test samples"] if self.after.samples else []
        return html_table(rows, notes=[*judged, *self.reasons])

    def to_json(self) -> JsonObject:
        """Return plain lists and numbers: everything but the network."""
        return {
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "units": {name: {"before": before, "after": after} for name, (before, after) in self.units.items()},
            "score": {name: None if value != value else value for name, value in zip(_SIDES, self.score, strict=True)},
            "plan": self.plan.to_record(),
            "reasons": list(self.reasons),
            "histories": [history.to_json() for history in self.histories],
            "lineage": None if self.lineage is None else self.lineage.to_record(),
        }


_SIDES = ("before", "after")


def shown_quality(measured: Measurement) -> str:
    """Return the primary metric as text."""
    return f"{measured.accuracy:.1%}" if measured.primary == "accuracy" else f"{measured.quality[measured.primary]:.4g}"


def _together(batches: Sequence[Args | Kwargs]) -> RawSamples:
    """Return batches of calls as one: a tensor where it is the only argument; the first where they do not go together.

    Tensors of unlike lengths, such as the nodes and the edges of a graph, are one sample as a whole.
    """
    flat, shapes = zip(*map(tree_flatten, batches), strict=True)
    lengths = [{len(leaf) if leaf.ndim else 0 for leaf in leaves if isinstance(leaf, Tensor)} for leaves in flat]
    joined: Any = batches[0]
    if len(set(shapes)) == 1 and all(len(found) == 1 and 0 not in found for found in lengths):
        columns = zip(*flat, strict=True)
        leaves = [torch.cat(list(column)) if isinstance(column[0], Tensor) else column[0] for column in columns]
        joined = tree_unflatten(leaves, shapes[0])
    only = isinstance(joined, tuple) and len(joined) == 1 and isinstance(joined[0], Tensor)
    samples: RawSamples = joined[0] if only else joined
    return samples


def new_edits(before: nn.Module, after: nn.Module) -> Plan:
    """Return the part of a network's plan that was not there before."""
    old, plan = plan_of(before), plan_of(after)
    steps = list(plan.steps())
    if plan.edits[: len(old)] == old.edits:
        steps = steps[len(old) :]
    else:  # of an ensemble, whose plan is that of one member after the other
        steps = [step for step in steps if step[0] not in old.edits]
    return Plan(tuple(edit for edit, _ in steps), plan.example, tuple(numbers for _, numbers in steps))
