import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topiarist.errors import ModelError
from topiarist.storage.codes import BITS, read_mask, write_mask


@given(st.lists(st.booleans(), max_size=300) | st.integers(0, 4000).map(lambda many: [False] * many + [True] * 9))
def test_a_mask_comes_back(kept: list[bool]) -> None:
    mask = numpy.array(kept, bool)
    kind, code = write_mask(mask)
    assert (read_mask(code, kind=kind, count=sum(kept), size=len(kept)) == mask).all()
    assert len(code) <= -(-len(kept) // 8)


@pytest.mark.parametrize(("density", "bits"), [(0.5, 1.01), (0.2, 0.745), (0.1, 0.49), (0.01, 0.085)])
def test_what_lies_at_random_takes_little_more_than_its_entropy(density: float, bits: float) -> None:
    kept = numpy.random.default_rng(0).random(50_000) < density
    assert len(write_mask(kept)[1]) * 8 <= bits * len(kept)


def test_whole_filters_that_are_gone_cost_nothing() -> None:
    kind, code = write_mask(numpy.repeat(numpy.arange(64) % 3 == 0, 900))
    assert kind == BITS and len(code) < 150


@given(st.binary(max_size=40), st.integers(-3, 20), st.integers(0, 400), st.integers(0, 300))
def test_any_bytes_are_a_mask_or_one_line(code: bytes, kind: int, count: int, size: int) -> None:
    try:
        kept = read_mask(code, kind=kind, count=count, size=size)
    except ModelError as error:
        assert str(error).startswith("the file is damaged: ")
    else:
        assert kept.shape == (size,) and kept.sum() == count
