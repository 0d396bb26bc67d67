"""What the training loop asks of whatever runs the networks."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from torch import Tensor, nn

from topiarist.data import AnyPart
from topiarist.training.batching import Batch

State = dict[str, Tensor]
Memory = Mapping[str, Mapping[str, Tensor]]


class Engine(Protocol):
    """One or more networks in training; members are numbered as they are now, from 0."""

    models: list[nn.Module]

    def epoch(self, number: int) -> AbstractContextManager[None]:
        """Surround one epoch of training steps: dropout draws from the seed and the epoch's number alone."""
        ...

    def step(self, batch: Batch, rates: Sequence[float]) -> tuple[Tensor, Tensor]:
        """Make one step at a rate a member; give weighted losses and weights (n_members, n), to be summed over n."""
        ...

    def logits(self, parts: Sequence[AnyPart]) -> list[tuple[Tensor, Tensor]]:
        """Give each member's logits and class numbers on a part of its own, as at test time."""
        ...

    def finite(self) -> list[bool]:
        """Say which members have only finite weights."""
        ...

    def sparsities(self) -> Sequence[float | None]:
        """Give the fraction of weights or units that is pruned, for each member; None where nothing is."""
        ...

    def remember(self) -> None:
        """Keep the weights as they are now."""
        ...

    def recall(self, member: int) -> None:
        """Go back to the weights last remembered."""
        ...

    def write_back(self) -> None:
        """Put the weights into `models`."""
        ...

    def keep(self, members: Sequence[int]) -> None:
        """Go on with these members only."""
        ...

    def optimizer_state(self) -> State:
        """Give what the optimizer remembers, for a checkpoint."""
        ...

    def load_optimizer_state(self, state: State) -> None:
        """Take up what `optimizer_state` gave."""
        ...

    def memory(self) -> Memory:
        """Give what the optimizer remembers of each parameter of the only member, by the parameter's name."""
        ...

    def remind(self, memory: Memory, steps: int) -> None:
        """Let the optimizer go on after so many steps, with what it is to remember of parameters."""
        ...
