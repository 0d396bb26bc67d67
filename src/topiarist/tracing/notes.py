"""What is noted while a network runs: the labels, origins and steps of its tensors, and how parameters are used."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from topiarist.tracing.labels import Labels
from topiarist.tracing.leaves import Leaf, Origin, Product, Renumbering
from topiarist.tracing.operation import INPUT
from topiarist.tracing.remedies import LONGER, SOURCE
from topiarist.tracing.steps import Step
from topiarist.tracing.vectors import Axes, Vector


class Notes:
    """What is known of the tensors of one run or several; `like` are notes of earlier runs, which these continue."""

    def __init__(self, model: nn.Module, labels: Labels | None = None, *, like: "Notes | None" = None) -> None:
        self.labels: Labels = labels or (Labels() if like is None else like.labels)
        self.leaves: dict[str, Leaf] = {}
        self.not_understood: Counter[str] = Counter()
        self.renumberings: list[Renumbering] = []
        self.slices: list[tuple[Vector, Vector]] = []  # of parameters: what there was, and what was used of it
        self.products: list[Product] = []
        self.reached: list[str] = []  # parameters and buffers in the order in which they are used
        self.modules: list[str] = [""]
        self.layer: Step | None = None
        self.failure: tuple[BaseException, str] | None = None
        self.groups: Vector | None = None  # of the last operation in groups
        self.layer_groups: dict[str, tuple[str, Vector]] = {}
        self._sources: dict[tuple[str, int], Vector] = {}
        self._axes: Any = WeakTensorKeyDictionary()
        self._origins: Any = WeakTensorKeyDictionary()
        self._steps: Any = WeakTensorKeyDictionary()
        self._originals: dict[int, str] = {}
        self.inside_decomposition = 0
        self.draws = False  # random numbers, also when it is evaluated
        self.originals_used: list[str] = []
        self._overwritten: dict[int, tuple[Tensor, Tensor]] = {}
        if like is not None:
            for shared in ("reached", "slices", "renumberings", "layer_groups", "not_understood", "_sources"):
                setattr(self, shared, getattr(like, shared))
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            self._add_leaf(name, tensor, None if like is None else like.leaves.get(name))
        for path, module in model.named_modules():
            if isinstance(module, torch.jit.ScriptModule):
                self._fix_leaves(path)

    def _add_leaf(self, name: str, tensor: Tensor, known: Leaf | None) -> None:
        if known is None or known.tensor.shape != tensor.shape:
            known = Leaf(tensor, self._leaf_axes(name, tensor))
        axes = known.axes
        self.leaves[name] = replace(known, tensor=tensor)
        self._axes[tensor] = axes
        self._origins[tensor] = Origin(name, tuple(range(tensor.ndim)))

    def _fix_leaves(self, path: str) -> None:
        """Fix the units of a module that torch.jit compiled: nothing in it can be replaced."""
        for name, leaf in self.leaves.items():
            if name.startswith(f"{path}.") or not path:
                for vector in leaf.axes:
                    if vector is not None:
                        self.labels.fix(vector, f"'{path}' is compiled by torch.jit, and cannot change; {SOURCE}")

    def _leaf_axes(self, name: str, tensor: Tensor) -> Axes:
        """Return the label vectors of a parameter or buffer: fresh units along each axis."""
        whole = not (tensor.is_floating_point() or tensor.is_complex()) and tensor.ndim != 1
        return [None if whole else self.labels.create(size) for size in tensor.shape]

    def axes(self, tensor: Tensor) -> Axes:
        """Return the label vectors along the axes of a tensor."""
        found: Axes | None = self._axes.get(tensor)
        if found is None and id(tensor) in self._originals:
            found = self._axes[tensor] = self._original_axes(tensor)
        return [None] * tensor.ndim if found is None else found

    def know_original(self, model: nn.Module) -> None:
        """Remember the network that the one which runs is a copy of: functions and hooks may hold on to it."""
        own = {id(leaf.tensor) for leaf in self.leaves.values()}
        tensors = (*model.named_parameters(), *model.named_buffers())
        self._originals = {id(tensor): name for name, tensor in tensors if id(tensor) not in own}

    def _original_axes(self, tensor: Tensor) -> Axes:
        """Return fixed units for a parameter of the network itself: a cut of a copy would not reach it."""
        name = self._originals[id(tensor)]
        self.originals_used.append(name)
        axes: Axes = [self.labels.create(size) for size in tensor.shape]
        for vector in axes:
            if vector is not None:
                self.labels.fix(vector, self.held_on(name))
        return axes

    def keep_values(self, tensor: Tensor) -> None:
        """Remember the values of a parameter that forward is about to write into: the network shares them."""
        if isinstance(tensor, nn.Parameter) and id(tensor) not in self._overwritten:
            self._overwritten[id(tensor)] = tensor, tensor.detach().clone()

    def restore_values(self) -> None:
        """Restore the values of parameters that forward wrote into."""
        for tensor, values in self._overwritten.values():
            tensor.data.copy_(values)

    @staticmethod
    def held_on(name: str) -> str:
        """Return the reason for units of a parameter that code takes from the network itself, where a copy runs."""
        return f"a lambda, function or hook holds on to '{name}' of the network, also in a copy: make it a method"

    def set_axes(self, tensor: Tensor, axes: Axes) -> None:
        """Set the label vectors along the axes of a tensor."""
        if len(axes) != tensor.ndim:
            raise ValueError(f"a tensor of {tensor.ndim} axes needs as many label vectors; found {len(axes)}")
        self._axes[tensor] = axes

    def origin(self, tensor: Tensor) -> Origin | None:
        """Return the parameter that a tensor is made of; None for what depends on the input."""
        found: Origin | None = self._origins.get(tensor)
        return found

    def set_origin(self, tensor: Tensor, origin: Origin | None) -> None:
        """Remember the parameter that a tensor is made of."""
        if origin is not None:
            self._origins[tensor] = origin

    def step_of(self, tensor: Tensor) -> Step | None:
        """Return the step that a tensor comes from; None where it depends on no input."""
        found: Step | None = self._steps.get(tensor)
        return found

    def set_step(self, tensor: Tensor, step: Step) -> None:
        """Remember the step that a tensor comes from."""
        self._steps[tensor] = step

    def give_like(self, tensor: Tensor, shown: Tensor, axes: Axes) -> None:
        """Set the label vectors of a tensor which comes from where another comes from that shows its units."""
        self.set_axes(tensor, axes)
        self.set_origin(tensor, self.origin(shown))
        if (step := self.step_of(shown)) is not None:
            self.set_step(tensor, step)

    def seen(self, args: Any) -> Any:
        """Return the arguments of a call as they count in this run."""
        return args

    def source_of(self, tensors: Iterable[Tensor]) -> str:
        """Describe the source of the first tensor that has no units along the axis in question."""
        sources = [step.source for step in map(self.step_of, tensors) if step is not None and step.source]
        return f"{INPUT}{sources[0]}'" if sources else "they meet a constant"

    def source_units(self, reason: str, size: int) -> Vector:
        """Return the fixed units of an input, or of whatever a reason names, along an axis of some size."""
        key = reason, size
        if key not in self._sources:
            self._sources[key] = self.labels.create(size)
            self.labels.fix(self._sources[key], reason)
        return self._sources[key]

    def described_place(self) -> str:
        """Name the module that is running."""
        return f"'{self.modules[-1]}'" if self.modules[-1] else "the network's forward"

    def note_failure(self, error: BaseException) -> None:
        """Remember in which module an error was raised first."""
        if self.failure is None or self.failure[0] is not error:
            self.failure = error, self.modules[-1]

    def failed_module(self, error: BaseException) -> str:
        """Return the module that an error came from; forward itself where none is known."""
        return self.failure[1] if self.failure is not None and self.failure[0] is error else self.modules[-1]

    def note_role(self, tensor: Tensor, axis: int, role: str) -> None:
        """Remember how an axis of a parameter is used: it reads units, or writes them."""
        origin = self.origin(tensor)
        if origin is not None and origin.dimensions[axis] is not None:
            self.leaves[origin.name].roles.setdefault(int(origin.dimensions[axis] or 0), set()).add(role)

    def reads_along(self, tensor: Tensor, axis: int) -> bool:
        """Return whether an axis of a tensor is one of a parameter, so that it is known which parameter reads there."""
        origin = self.origin(tensor)
        return origin is not None and origin.dimensions[axis] is not None

    def note_product(self, axes: Iterable[tuple[int, Vector | None]], tensors: Iterable[Tensor]) -> None:
        """Remember multiplications along axes of some sizes."""
        times, vectors = 1, []
        for size, vector in axes:
            if vector is None:
                times *= size
            else:
                vectors.append(vector)
        of_input = not all(self.step_of(tensor) is None and self.origin(tensor) is not None for tensor in tensors)
        self.products.append(Product(times, tuple(vectors), of_input))

    def renumber(self, name: str, vector: Vector) -> None:
        """Remember that a buffer of whole numbers picks positions along an axis: once, however often it does."""
        if all(each.name != name for each in self.renumberings):
            self.renumberings.append(Renumbering(name, vector))

    def fix_unused(self) -> None:
        """Fix units of parameters that slices left out, and nothing else used: they are for other inputs."""
        if not self.slices:
            return
        used = numpy.unique(numpy.concatenate([self.labels.units_at(kept).reshape(-1) for _, kept in self.slices]))
        for whole, _ in self.slices:
            left = ~numpy.isin(self.labels.units_at(whole), used).any(axis=1)
            if left.any():
                self.labels.fix(whole[left], f"the example does not reach them: they are for longer inputs; {LONGER}")

    def note_groups(self, attribute: str) -> None:
        """Remember how many groups the layer that is running has, and which units they are."""
        if self.layer is not None and self.groups is not None:
            self.layer_groups[self.layer.name] = attribute, self.groups
