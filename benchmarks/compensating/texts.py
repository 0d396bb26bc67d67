"""A synthetic text task: how many things does a short review praise?

A review says of three things how they were: `[first] the room was not very pleasant the food was awful …`. The answer
is how many of them were good. "not" turns the opinion behind it round, "very" does nothing, clauses are of different
lengths, and of the 400 words of opinion the rare ones are seen a few times only.
"""

import torch
from torch import Tensor

from benchmarks.compensating.images import Samples
from topiarist.randomness import generator

THINGS, OPINIONS = 12, 400  # words; of the opinions, even numbers are good and odd ones are bad
FIRST, THE, WAS, NOT, VERY, PAD = range(6)
FIRST_THING = 6
FIRST_OPINION = FIRST_THING + THINGS
WORDS = FIRST_OPINION + OPINIONS
CLAUSES = 3
LENGTH = 1 + 6 * CLAUSES


def write_reviews(count: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return reviews as numbers of words (n, LENGTH), and how many of their opinions are good (n,)."""
    things = torch.rand(count, THINGS, generator=random).argsort(1)[:, :CLAUSES]
    frequency = 1 / (1 + torch.arange(OPINIONS, dtype=torch.float64)).sqrt()  # a long tail of rare words
    opinions = torch.multinomial(frequency, count * CLAUSES, True, generator=random).view(count, CLAUSES)
    turned, strong = (torch.rand(count, CLAUSES, generator=random) < 0.4 for _ in range(2))
    tokens = torch.full((count, LENGTH), PAD)
    tokens[:, 0] = FIRST
    rows, ends = torch.arange(count), torch.ones(count, dtype=torch.long)
    always = torch.ones(count, dtype=torch.bool)
    for clause in range(CLAUSES):
        words = (
            (THE, always),
            (FIRST_THING + things[:, clause], always),
            (WAS, always),
            (NOT, turned[:, clause]),
            (VERY, strong[:, clause]),
            (FIRST_OPINION + opinions[:, clause], always),
        )
        for word, there in words:
            tokens[rows[there], ends[there]] = torch.as_tensor(word).expand(count)[there]
            ends += there
    good = (opinions % 2 == 0) ^ turned
    return tokens, good.sum(1)


def reviews(seed: int = 0, train: int = 20_000, test: int = 5_000) -> Samples:
    """Return training and test reviews."""
    x, y = write_reviews(train, generator(seed, "reviews"))
    x_test, y_test = write_reviews(test, generator(seed, "test reviews"))
    return Samples(x, y, x_test, y_test)
