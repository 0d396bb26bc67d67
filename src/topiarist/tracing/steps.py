"""What runs, in order: the layers that are called, the operations of forward between them, inputs and outputs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from topiarist.tracing.vectors import Axes


@dataclass(eq=False)
class Step:
    """One thing that runs.

    Parameters
    ----------
    kind, name : str, str
        A layer by its path, an operation by its name in ATen ("relu", "add", "view"), an input by the name of forward's
        argument, or the output.
    modules : tuple[str, ...]
        The modules that were running, the network itself ("") first.
    settings : Mapping[str, Any]
        What an operation was given besides tensors, by name.
    inputs, users : list[Step]
        What it takes tensors from, in order and each once, and what takes tensors from it.
    source : str
        The network's input that it comes from, the first where there are several.
    """

    kind: Literal["input", "layer", "operation", "output"]
    name: str
    modules: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    inputs: "list[Step]" = field(default_factory=list, repr=False)
    users: "list[Step]" = field(default_factory=list, repr=False)
    source: str = ""

    def take(self, steps: "Iterable[Step]") -> None:
        """Take tensors from other steps."""
        for step in steps:
            if step is not self and step not in self.inputs:
                self.inputs.append(step)
                step.users.append(self)
                self.source = self.source or step.source


@dataclass(frozen=True)
class LayerCall:
    """A layer that runs: its first step, the shape of its result there and the axis of its units, from the right.

    `count` is how often it runs, `elements` how many values it returns in all, `taken` how many it reads;
    `read` has the units along the axes of what it reads, each time that it runs.
    """

    step: Step
    shape: tuple[int, ...]
    axis: int | None
    count: int = 1
    elements: int = 0
    taken: int = 0
    read: tuple[Axes, ...] = field(default=(), repr=False, compare=False)


def behind(steps: Iterable[Step]) -> set[Step]:
    """Return the steps that come after some steps."""
    waiting = list(steps)
    reached: set[Step] = set()
    while waiting:
        new = [user for user in waiting.pop().users if user not in reached]
        reached.update(new)
        waiting += new
    return reached
