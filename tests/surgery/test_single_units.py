"""Greedy choice among few units in numpy is that of the formulas, step by step."""

from itertools import islice
from typing import Literal

import pytest
import torch

from topiarist.surgery.choice.single_units import take_greedily


def worths(needs: torch.Tensor, spread: torch.Tensor, gone: list[int], unit: int, which: str) -> float:
    """Return what taking one more unit changes of tr(N S⁻¹ Nᵀ), from scratch."""

    def explained(units: list[int]) -> float:
        if not units:
            return 0.0
        some, inside = needs[:, :, units], spread[:, units][:, :, units]
        return float((some @ torch.linalg.solve(inside, some.mT)).diagonal(dim1=1, dim2=2).sum())

    if which == "most":
        return explained([*gone, unit]) - explained(gone)
    left = [each for each in range(needs.shape[2]) if each not in gone]
    return explained(left) - explained([each for each in left if each != unit])


@pytest.mark.parametrize("which", ["least", "most"])
def test_each_unit_is_worth_what_the_formula_says_and_the_extreme_one_is_taken(which: Literal["least", "most"]) -> None:
    random = torch.Generator().manual_seed(0)
    half = torch.randn(2, 30, 8, generator=random, dtype=torch.float64)
    spread, needs = half.mT @ half / 30, torch.randn(2, 3, 8, generator=random, dtype=torch.float64)
    inverse = torch.linalg.inv(spread)
    # Elimination works on weights N S⁻¹ and the inverse, as in optimal brain surgery; matching on N and S themselves.
    given = (needs @ inverse, inverse) if which == "least" else (needs, spread)
    before = [each.clone() for each in given]
    gone: list[int] = []
    for unit, worth in islice(take_greedily(given[0], given[1], 1e-300, which), 6):
        every = {each: worths(needs, spread, gone, each, which) for each in range(8) if each not in gone}
        assert worth == pytest.approx(every[unit], rel=1e-9)
        assert unit == (min if which == "least" else max)(every, key=every.__getitem__)
        gone.append(unit)
    assert all(torch.equal(one, two) for one, two in zip(given, before, strict=True))  # what is given stays as it is
