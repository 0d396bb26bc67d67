"""Widths within a latency: a linear relaxation over a table of times.

With a price λ per millisecond, each space in turn takes the width that minimises

    lost share + λ · milliseconds,

the other widths being what they are, until none changes. All widths of a space are compared at once, so that a step of
the processor is taken whole or not at all: of the widths that take equally long, the widest loses least. The lowest
price that keeps the limit is found by halving.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy

from topiarist.surgery.choice.costs import Costs

SWEEPS = 8  # over all spaces; a few are enough for most networks
HALVINGS = 24  # of the logarithm of the price, which spans PRICES
PRICES = 1e-6, 1e6  # lost shares per time of the whole network
MOST_CANDIDATES = 128  # of one space; of more, multiples of 4, 8 … are compared


def relaxed_widths(
    costs: Costs, lost: Mapping[str, Sequence[float]], candidates: Callable[[str], list[int]], limit_ms: float
) -> dict[str, int]:
    """Return widths whose predicted time keeps a limit, or the fastest widths that there are where none does."""
    whole_ms = float(costs.latency_ms({}))
    if whole_ms <= limit_ms:
        return dict(costs.widths)
    choices = {name: thinned(candidates(name)) for name in costs.widths}
    shares = {name: numpy.asarray(lost[name], float)[choices[name]] for name in choices}

    def at_price(price: float) -> dict[str, int]:
        widths = dict(costs.widths)
        for _ in range(SWEEPS):
            before = dict(widths)
            for name, possible in choices.items():
                times = costs.latency_ms({**widths, name: numpy.asarray(possible)}) / whole_ms
                objective = shares[name] + price * times
                # the last of equals: the widest
                widths[name] = possible[len(possible) - 1 - int(numpy.argmin(objective[::-1]))]
            if widths == before:
                break
        return widths

    low, high = numpy.log(PRICES)
    found = at_price(float(numpy.exp(high)))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        widths = at_price(float(numpy.exp(middle)))
        if costs.latency_ms(widths) <= limit_ms:
            high, found = middle, widths
        else:
            low = middle
    return found


def thinned(possible: list[int]) -> list[int]:
    """Return at most `MOST_CANDIDATES` widths or so, multiples of a power of two, and always the least and the full."""
    step = 1
    while len(possible) // step > MOST_CANDIDATES:
        step *= 2
    some = [width for width in possible if width % step == 0] if step > 1 else possible
    return sorted({possible[0], *some, possible[-1]})
