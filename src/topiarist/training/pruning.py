"""Pruning while training: how many weights are zero after how many epochs, and which.

The polynomial schedule is that of Zhu and Gupta, To prune, or not to prune (2017), as Ooi, Peksi and Gan use it:
s = s_f + (s_i − s_f) · (1 − (t − t₀) / (n · Δt))³, where t is the number of epochs done.
"""

from typing import Literal

from pydantic import Field, model_validator

from topiarist.settings import Settings

ScheduleName = Literal["polynomial", "linear", "constant", "one-shot"]
Scope = Literal["layer", "global"]
WeightScore = Literal["magnitude", "taylor", "movement"]
POWERS = {"polynomial": 3, "linear": 1}
LONGEST_GROUP = 1024


class Pruning(Settings):
    """Which part of the kernels becomes zero, and when; biases and norms are left alone.

    `sparsity` is the fraction of zeros at the end. The polynomial and the linear schedule start with
    `initial_sparsity` after `begin` epochs and prune again `every` so many epochs, `times` times; unless given, they
    prune from a quarter of the training to three quarters. The constant schedule prunes once, after `begin` epochs, at
    the start of training unless given; so does the one-shot schedule, in the middle of training unless given. What is
    zero stays zero.

    `scope`: each layer loses the same fraction, rounded so that the whole is exact; or all kernels are ranked together.
    `score`: the weights of the least magnitude |w| go; or those of the least |w · gradient| (`taylor`), summed over the
    steps since the last pruning, or of the least −w · gradient (`movement`), summed over all steps: those that move
    towards zero. `pattern=(2, 4)` makes 2 of every 4 weights in a row zero, as some hardware wants it. With `units`,
    whole units go in the place of weights, the same fraction of each space, or of all together.
    """

    sparsity: float = Field(default=0.8, ge=0, lt=1)
    initial_sparsity: float = Field(default=0.0, ge=0, lt=1)
    schedule: ScheduleName = "polynomial"
    begin: int | None = Field(default=None, ge=0)
    every: int | None = Field(default=None, ge=1)
    times: int | None = Field(default=None, ge=0)
    scope: Scope = "layer"
    score: WeightScore = "magnitude"
    pattern: tuple[int, int] | None = None
    units: bool = False

    @model_validator(mode="after")
    def _what_goes_together(self) -> "Pruning":
        if self.initial_sparsity > self.sparsity:
            raise ValueError(f"initial_sparsity must be at most sparsity, {self.sparsity:g}")
        if self.schedule in ("constant", "one-shot"):
            given = next((name for name in ("every", "times") if getattr(self, name) is not None), None)
            given = "initial_sparsity" if self.initial_sparsity else given
            if given is not None:
                raise ValueError(f"{given} has no effect on the {self.schedule} schedule, which prunes once")
        if self.pattern is not None:
            zeros, group = self.pattern
            if not 0 < zeros < group <= LONGEST_GROUP:
                most = f"of {LONGEST_GROUP} at most"
                raise ValueError(f"a pattern (2, 4) makes 2 of 4 weights zero, {most}; found {self.pattern}")
            if self.units or self.scope == "global" or self.sparsity != type(self).model_fields["sparsity"].default:
                raise ValueError("a pattern says itself how many weights go: leave out sparsity, units and scope")
        return self

    def prunings(self, epochs: int, *, after: int = 0) -> dict[int, float]:
        """Give the sparsity after each pruning, by the number of epochs that are done before it.

        Of a training that begins after some epochs, as a rewound one does, the default is a share of the rest.
        """
        final = self.sparsity if self.pattern is None else self.pattern[0] / self.pattern[1]
        rest = epochs - after
        if self.schedule in ("constant", "one-shot"):
            usual = after if self.schedule == "constant" else after + rest // 2
            return {usual if self.begin is None else self.begin: final}
        begin = after + rest // 4 if self.begin is None else self.begin
        every = max(1, rest // 40) if self.every is None else self.every
        end = min(epochs - rest // 4, epochs - 1)
        times = (end - begin) // every if self.times is None else self.times
        initial, power = min(self.initial_sparsity, final), POWERS[self.schedule]
        if times <= 0:
            return {begin: final}
        return {
            begin + number * every: final + (initial - final) * (1 - number / times) ** power
            for number in range(times + 1)
        }
