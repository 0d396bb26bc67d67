"""Pruning while training: how many weights are zero after how many epochs, and which.

The polynomial schedule is that of Zhu and Gupta, To prune, or not to prune (2017), as Ooi, Peksi and Gan use it:
s = s_f + (s_i − s_f) · (1 − (t − t₀) / (n · Δt))³, where t is the number of epochs done.
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from topiarist.settings import Settings

PruningScheduleName = Literal["polynomial", "linear", "constant", "one-shot"]
Scope = Literal["layer", "global"]
PruningPhase = Literal["middle", "early"]
WeightScore = Literal["magnitude", "taylor", "movement"]
POWERS = {"polynomial": 3, "linear": 1}
LONGEST_GROUP = 1024  # far above the groups of 4 that hardware supports: a longer one is a slip


class Pruning(Settings):
    """Which part of the kernels becomes zero, and when; biases and norms are left alone, and zeros stay zero.

    The polynomial and the linear schedule prune from a quarter of the training to three quarters, or early, from its
    start to a quarter, unless `begin`, `every` and `times` say otherwise. The constant schedule prunes once, after
    `begin` epochs or at the start; so does the one-shot schedule, after `begin` epochs or in the middle.

    Examples
    --------
    >>> Pruning(sparsity=0.8, schedule="linear", begin=0, every=2, times=2).prunings(10)
    {0: 0.0, 2: 0.4, 4: 0.8}
    """

    sparsity: float = Field(default=0.8, ge=0, lt=1, description="Fraction of the weights that are zero at the end.")
    initial_sparsity: float = Field(default=0.0, ge=0, lt=1, description="Sparsity after the first pruning.")
    schedule: PruningScheduleName = Field(default="polynomial", description="How the sparsity rises over the epochs.")
    begin: int | None = Field(default=None, ge=0, description="Epochs before the first pruning.")
    every: int | None = Field(default=None, ge=1, description="Epochs between two prunings.")
    times: int | None = Field(default=None, ge=0, description="Number of prunings after the first.")
    when: PruningPhase = Field(
        default="middle", description="Prune in the middle half of the training, or early, in its first quarter."
    )
    scope: Scope = Field(
        default="layer", description="Prune the same fraction of each layer, or rank all weights together (global)."
    )
    score: WeightScore = Field(
        default="magnitude",
        description="Remove the smallest |w| (magnitude) or |w · gradient| (taylor), or what moves to zero (movement).",
    )
    pattern: tuple[int, int] | None = Field(
        default=None, description="Zeros in each group of weights in a row: 2 of 4 suits hardware with sparse kernels."
    )
    units: bool = Field(default=False, description="Remove whole units instead of single weights.")

    @model_validator(mode="after")
    def _check(self) -> Self:
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
            ranked = self.scope == "global" and "scope" in self.model_fields_set
            if self.units or ranked or self.sparsity != type(self).model_fields["sparsity"].default:
                raise ValueError("a pattern already says how many weights go: leave out sparsity, units and scope")
        return self

    def prunings(self, epochs: int, *, after: int = 0) -> dict[int, float]:
        """Return the sparsity after each pruning, by the number of epochs that are done before it.

        For a training that begins after some epochs, as a rewound one does, the defaults are fractions of the rest.
        """
        final = self.sparsity if self.pattern is None else self.pattern[0] / self.pattern[1]
        rest = epochs - after
        if self.schedule in ("constant", "one-shot"):
            usual = after if self.schedule == "constant" else after + rest // 2
            return {usual if self.begin is None else self.begin: final}
        early = self.when == "early"
        usual = after if early else after + rest // 4
        begin = usual if self.begin is None else self.begin
        every = max(1, rest // 40) if self.every is None else self.every
        end = after + rest // 4 if early else min(epochs - rest // 4, epochs - 1)
        times = (end - begin) // every if self.times is None else self.times
        initial, power = min(self.initial_sparsity, final), POWERS[self.schedule]
        if times <= 0:
            return {begin: final}
        return {
            begin + number * every: final + (initial - final) * (1 - number / times) ** power
            for number in range(times + 1)
        }
