"""The run itself: every ATen operation that a network runs is seen here, and the labels of its tensors follow it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from topiarist.tracing.labels import Labels
from topiarist.tracing.leaves import Leaf
from topiarist.tracing.notes import Notes
from topiarist.tracing.operation import RULES, Operation
from topiarist.tracing.remedies import RULE
from topiarist.tracing.rules import cells, contraction, pointwise
from topiarist.tracing.steps import Step

WRITTEN_OUT: dict[str, Any] = {  # what torch does in one operation, and has no decomposition of
    "_trilinear": contraction.trilinear,
    "_thnn_fused_lstm_cell": cells.lstm_cell,
    "_thnn_fused_gru_cell": cells.gru_cell,
}


class Tracer(Notes, TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows the labels through one run or several."""

    def __init__(self, model: nn.Module, labels: Labels | None = None, *, like: "Tracer | None" = None) -> None:
        TorchDispatchMode.__init__(self)  # type: ignore[no-untyped-call]
        Notes.__init__(self, model, labels, like=like)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch from importing its compiler, which takes a second."""
        return False

    def __torch_dispatch__(self, func: Any, types: Sequence[Any], args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunction():  # scripted code comes here straight, while numbers are watched
            return self._dispatch(func, args, kwargs or {})

    def _dispatch(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = _name_of(func)
        if name in WRITTEN_OUT:
            with self:
                return WRITTEN_OUT[name](*args, **kwargs)
        if not _is_known(name, func):
            from torch._decomp import decomposition_table  # noqa: PLC0415 - takes a second; few networks need it

            table = decomposition_table.get(func)
            if table is not None or func.has_kernel_for_dispatch_key(torch.DispatchKey.CompositeImplicitAutograd):
                with self, self._decomposing():
                    given = table(*args, **kwargs) if table is not None else func.decompose(*args, **kwargs)
                if given is not NotImplemented:
                    return given
        axes_before, shape_before = [], []
        if func._schema.is_mutable and args and isinstance(args[0], Tensor):
            self.keep_values(args[0])
            axes_before, shape_before = list(self.axes(args[0])), list(args[0].shape)
        output = self.compute(name, func, args, kwargs)
        operation = Operation(self, name, func, args, kwargs, output)
        operation.axes_before, operation.shape_before = axes_before, shape_before
        self.follow(operation)
        return output

    @contextmanager
    def _decomposing(self) -> Iterator[None]:
        """Remember that sizes come from torch's own code, where no one watches them."""
        self.inside_decomposition += 1
        try:
            yield
        finally:
            self.inside_decomposition -= 1

    def compute(self, name: str, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operation."""
        self.draws |= torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **kwargs)

    def follow(self, operation: Operation) -> None:
        """Let the labels, origins and steps of what came out follow from what went in."""
        rule = RULES.get(operation.name)
        if rule is None and torch.Tag.pointwise in operation.function.tags:
            rule = pointwise.combine
        if rule is None:
            self._fix_all(operation)
        else:
            rule(operation)
        written = operation.inputs[0] if operation.function._schema.is_mutable and operation.inputs else None
        for tensor in operation.inputs:
            origin = self.origin(tensor)
            if origin is not None and not (tensor is written and isinstance(tensor, nn.Parameter)):  # that is no use
                self._note_use(self.leaves[origin.name], origin.name)
        self._add_step(operation)

    def _note_use(self, leaf: Leaf, name: str) -> None:
        user = None if self.layer is None else self.layer.name
        if not leaf.users:
            self.reached.append(name)
        if user not in leaf.users:
            leaf.users.append(user)

    def _fix_all(self, operation: Operation) -> None:
        """Fix the units of all that an operation takes that is not understood; its result has none."""
        self.not_understood[operation.name] += 1
        for tensor in operation.inputs:
            for vector in self.axes(tensor):
                operation.fix(vector, f"'{operation.name}' is not understood", RULE)
        for tensor in operation.outputs:
            self.set_axes(tensor, [None] * tensor.ndim)

    def _add_step(self, operation: Operation) -> None:
        sources = [step for step in map(self.step_of, operation.inputs) if step is not None]
        if not sources:
            return
        if self.layer is not None:
            for tensor in operation.outputs:
                self.set_step(tensor, self.layer)
            return
        tensors = {id(tensor) for tensor in operation.inputs}
        settings = {name: value for name, value in operation.arguments.items() if id(value) not in tensors}
        step = Step("operation", operation.name, tuple(self.modules), settings)
        step.take(sources)
        for tensor in operation.outputs:
            self.set_step(tensor, step)


def _name_of(func: Any) -> str:
    """Name an operation: without "aten::" and without the underscore of those that work in place."""
    space, _, name = func._schema.name.partition("::")
    plain = name.rstrip("_") if not name.startswith("_") or name.endswith("_") else name
    return plain if space == "aten" else f"{space}::{plain}"


def _is_known(name: str, func: Any) -> bool:
    return name in RULES or torch.Tag.pointwise in func.tags
