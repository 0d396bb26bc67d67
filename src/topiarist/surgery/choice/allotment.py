"""Free allotment: how wide each space should be, so that the whole network keeps within a budget.

Greedy: a unit goes where the smallest share of what its readers need is lost for each parameter, or for each
multiply-accumulate, that is freed; what is left of the budget at the end is filled up where it explains most.
Losses of one space at a time say little of what is left of all together where next to nothing stays: there, equal
shares are tried beside it (`comparing.py`).
Time falls in steps, at which a greedy search would stop: see `relaxation.py` for limits on latency.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torch import nn

from topiarist.errors import ModelError, SettingsError
from topiarist.surgery.calibration import Calibration, CalibrationBatches, batches_for
from topiarist.surgery.choice.comparing import nearest_widths
from topiarist.surgery.choice.costs import Costs, Measure
from topiarist.surgery.choice.evidence import evidence_of_whole, weight_shares
from topiarist.surgery.choice.relaxation import relaxed_widths
from topiarist.surgery.choice.selection import losses
from topiarist.surgery.width.reexpressions import round_up
from topiarist.tracing import Anatomy, ExampleInput, ensure_anatomy

Widths = dict[str, int]
Limits = Mapping[Measure, float]
WORDS: dict[Measure, str] = {
    "parameters": "parameters",
    "macs": "multiply-accumulates",
    "latency_ms": "milliseconds per sample",
}


TIMED = 5  # networks that are timed on the way to widths that keep a latency
STEPS = (1, 4, 8, 16)  # of widths, at which processors have theirs
USED = 0.95  # of a latency, from which on no better widths are looked for
AIM = 0.98  # of a latency: one that is just missed costs another network
# Of a network's parameters or multiply-accumulates, below which equal shares are tried too. LeNet on MNIST, settled, at
# 0.5 % of its parameters: 69.2 % freely, 87.5 % with equal shares; at 1.4 %: 93.9 and 95.0; at 6.8 %: 98.1 and 97.9.
SCARCE = 0.1
HALVINGS = 12  # after which a share is known to one of 4,096 units
LOWER = 0.98  # times the last aim, after a network that was slower than allowed


class LimitError(ModelError):
    """A limit is below the fewest that there can be."""

    def __init__(self, measure: Measure, limit: float, fewest: float, word: str = "possible") -> None:
        form = ".4g" if measure == "latency_ms" else ","
        asked, least = format(limit, form), format(fewest, form)
        super().__init__(f"a budget of {asked} {WORDS[measure]} cannot be met: {least} are the fewest {word}")
        self.measure, self.fewest = measure, fewest


def allot_widths(
    model: nn.Module,
    example_input: ExampleInput,
    *,
    calibration: Calibration,
    parameters: int | None = None,
    macs: int | None = None,
    multiple_of: int = 1,
    anatomy: Anatomy | None = None,
) -> Widths:
    """Return a width for each free space, such that the whole network keeps within a budget.

    Parameters
    ----------
    model, example_input
        The network, which is left as it is, and a batch that it reads.
    calibration : Tensor, tuple, mapping or iterable of batches
        Samples that show what the units do; no labels are needed.
    parameters, macs : int, optional
        The most parameters, and the most multiply-accumulates for one sample; one of them at least.
    multiple_of : int
        Widths are multiples of it, or the full width.
    anatomy : Anatomy, optional
        That of the network, where it is known.

    Returns
    -------
    dict[str, int]
        The widths by space, as `choose_units` takes them.

    Raises
    ------
    ModelError
        The budget is below the smallest network that there can be.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    >>> allot_widths(model, torch.zeros(1, 8), calibration=torch.randn(64, 8), parameters=108)
    {'0': 8}
    """
    calibration = list(calibration) if isinstance(calibration, Iterator) else calibration  # it is read more than once
    found = ensure_anatomy(model, example_input, anatomy)
    batches = batches_for(calibration, model, example_input)
    losses = Losses(Costs(model, found), lost_shares(model, found, batches), multiple_of)
    candidates = losses.candidates_within(parameters=parameters, macs=macs)
    return dict(nearest_widths(model, example_input, found, candidates, batches))


def lost_shares(model: nn.Module, anatomy: Anatomy, batches: CalibrationBatches) -> Mapping[str, list[float]]:
    """Return, for each free space, what is lost with so many units left: the sum of the shares that its readers lose.

    Many read a residual stream, so that a unit of it is worth more than one that a single layer reads.
    """
    shares = {}
    known = evidence_of_whole(model, anatomy, anatomy.free, batches)
    for name, space in anatomy.free.items():
        evidence = known[name]
        if evidence is None and space.places:
            gone = weight_shares(model, space).sort().values.cumsum(0)  # the least first
            shares[name] = [*gone.flip(0).tolist(), 0.0]
        elif evidence is None or not evidence.total > 0:
            shares[name] = [0.0] * (space.size + 1)
        else:
            shares[name] = losses(evidence)
    return shares


@dataclass(frozen=True)
class Losses:
    """What a network's spaces would lose at any width, and what they would cost: enough for budgets of any size."""

    costs: Costs
    lost: Mapping[str, list[float]]
    multiple_of: int = 1

    def within(
        self, *, parameters: float | None = None, macs: float | None = None, latency_ms: float | None = None
    ) -> Widths:
        """Return widths that keep within limits, and use them up; a latency is the one that is predicted."""
        given: dict[Measure, float | None] = {"parameters": parameters, "macs": macs, "latency_ms": latency_ms}
        limits = {measure: limit for measure, limit in given.items() if limit is not None}
        if not limits:
            raise SettingsError("a budget needs parameters, macs or both")
        for measure, limit in limits.items():
            if measure != "latency_ms" and (fewest := self.fewest(measure)) > limit:
                raise LimitError(measure, limit, fewest)
        start = dict(self.costs.widths)
        if latency_ms is not None:
            start = relaxed_widths(self.costs, self.lost, self.candidates, latency_ms)
            if (found := self.costs.latency_ms(start)) > latency_ms:
                raise LimitError("latency_ms", latency_ms, found)
        sizes: dict[Measure, float] = {measure: limit for measure, limit in limits.items() if measure != "latency_ms"}
        return self._fill_up(self._shrink(sizes, start) if sizes else start, limits)

    def candidates_within(self, *, parameters: float | None = None, macs: float | None = None) -> list[Widths]:
        """Return widths that keep within limits: freely allotted, and also equal shares where little is left."""
        found = [self.within(parameters=parameters, macs=macs)]
        given: dict[Measure, float | None] = {"parameters": parameters, "macs": macs}
        limits = {measure: limit for measure, limit in given.items() if limit is not None}
        if any(limit < SCARCE * getattr(self.costs, measure)({}) for measure, limit in limits.items()):
            found.append(self._evenly(limits))
        return found

    def _evenly(self, limits: Limits) -> Widths:
        """Return the widths of the largest share of all spaces within limits; what is left of them is filled up."""
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            fits = min(self._left(self._shared(middle), limits).values()) >= 0
            low, high = (middle, high) if fits else (low, middle)
        return self._fill_up(self._shared(low), limits)

    def _shared(self, share: float) -> Widths:
        sizes = self.costs.widths.items()
        return {name: min(round_up(max(round(share * size), 1), self.multiple_of), size) for name, size in sizes}

    def measured_within(self, limits: Limits) -> Widths:
        """Return widths that keep within limits, of which the latency is measured on a network of these widths.

        Each measurement corrects the prediction, until the limit is kept and most of it is used.
        """
        timing, asked = self.costs.timing, limits["latency_ms"]
        assert timing is not None
        kept: dict[float, Widths] = {}
        aim = AIM * asked
        for _ in range(TIMED):
            try:
                widths = self.within(**{**limits, "latency_ms": aim})
            except LimitError as error:
                if error.measure != "latency_ms" or error.fewest > asked:
                    raise
                widths = self.within(**{**limits, "latency_ms": error.fewest})
            found = timing.observe(widths)
            if found <= asked:
                kept[found] = widths
            if USED * asked <= found <= asked:
                break
            aim = AIM * asked if found <= asked else aim * LOWER
        return kept[max(kept)] if kept else widths

    def candidates(self, name: str) -> list[int]:
        """Return the widths that a space may have."""
        size = self.costs.widths[name]
        return sorted({*range(self.multiple_of, size, self.multiple_of), size})

    def fewest(self, measure: Measure) -> float:
        """Return the cost of the smallest network there can be."""
        smallest = {name: min(round_up(1, self.multiple_of), size) for name, size in self.costs.widths.items()}
        cost: float = getattr(self.costs, measure)(smallest)
        return cost

    def _shrink(self, limits: Limits, widths: Widths) -> Widths:
        """Return widths within the budget, from given ones down, from one multiple to the next."""
        left = self._left(widths, limits)
        prices = {name: self._price(name, widths, self._below(widths[name]), limits) for name in widths}
        while min(left.values()) < 0:
            name = min((name for name in widths if self._below(widths[name])), key=prices.__getitem__)
            narrow = {**widths, name: self._below(widths[name])}
            left = {key: room + self.costs.difference(key, name, widths, narrow) for key, room in left.items()}
            widths = narrow
            for near in self.costs.neighbours(name):
                prices[near] = self._price(near, widths, self._below(widths[near]), limits)
        return widths

    def _fill_up(self, widths: Widths, limits: Limits) -> Widths:
        """Return widths that use what is left of the budget."""
        while True:
            left = self._left(widths, limits)
            fitting = {}
            for name, width in widths.items():
                for above in self._above(name, width, limits):
                    wider = {**widths, name: above}
                    costs = {measure: self.costs.difference(measure, name, wider, widths) for measure in left}
                    if all(costs[measure] <= room for measure, room in left.items()):
                        fitting[name, above] = wider
            if not fitting:
                return widths
            prices = {key: self._price(key[0], wider, widths[key[0]], limits) for key, wider in fitting.items()}
            widths = fitting[max(fitting, key=prices.__getitem__)]

    def _above(self, name: str, width: int, limits: Limits) -> list[int]:
        """Return the widths to try above one: the next or, where time counts, the next steps that explain more."""
        full = self.costs.widths[name]
        if "latency_ms" not in limits:
            return [min(round_up(width + 1, self.multiple_of), full)] if width < full else []
        steps = {round_up(round_up(width + 1, step), self.multiple_of) for step in STEPS} if width < full else set()
        above = sorted({min(step, full) for step in steps})
        return [wider for wider in above if self.lost[name][wider] < self.lost[name][width]]

    def _price(self, name: str, wide: Widths, lower: int, limits: Limits) -> float:
        """Return what a step of one space down to a width loses for each part of the budget that it frees."""
        lost = self.lost[name][lower] - self.lost[name][wide[name]]
        narrow = {**wide, name: lower}
        freed = sum(self.costs.difference(key, name, wide, narrow) / limit for key, limit in limits.items())
        return lost / max(freed, 1e-12)  # no step frees nothing

    def _left(self, widths: Widths, limits: Limits) -> dict[Measure, float]:
        """Return what is left of each limit; below 0 where it is exceeded."""
        return {measure: limit - getattr(self.costs, measure)(widths) for measure, limit in limits.items()}

    def _below(self, width: int) -> int:
        """Return the next multiple below a width; 0 is none."""
        return (width - 1) // self.multiple_of * self.multiple_of
