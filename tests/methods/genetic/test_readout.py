import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from topiarist.errors import ModelError
from topiarist.methods.genetic import readout as module
from topiarist.methods.genetic.readout import Readout
from topiarist.randomness import array_generator

Bits = NDArray[numpy.bool_]
Parts = tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]


def networks(seed: int, sizes: list[int], n_units: int, n_classes: int, *, integers: bool) -> Parts:
    """Networks with other numbers of samples; of small integers, so that logits are exact and ties are many."""
    generator = array_generator(seed, "networks")

    def draw(*shape: int) -> Tensor:
        values = generator.integers(-2, 3, shape) if integers else generator.normal(size=shape)
        return torch.tensor(values, dtype=torch.float64)

    hidden = [draw(size, n_units) for size in sizes]
    labels = [torch.tensor(generator.integers(n_classes, size=size)) for size in sizes]
    return hidden, [draw(n_classes, n_units) for _ in sizes], [draw(n_classes) for _ in sizes], labels


def masks_of(seed: int, count: int, n_units: int) -> Bits:
    bits: Bits = array_generator(seed, "masks").random((count, n_units)) < 0.5
    return bits


def cut_logits(parts: Parts, network: int, mask: Bits) -> Tensor:
    """The logits of a network without the other units."""
    hidden, weights, bias, _ = (of_networks[network] for of_networks in parts)
    kept = torch.tensor(numpy.flatnonzero(mask))
    return hidden[:, kept] @ weights[:, kept].T + bias


def first_highest(logits: Tensor) -> Tensor:
    return torch.tensor(logits.numpy().argmax(axis=1))


@pytest.mark.slow
@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(2, 5), st.booleans())
def test_right_answers_are_those_of_the_cut_network(seed: int, n_units: int, n_classes: int, integers: bool) -> None:
    sizes = [23, 24, 1]
    parts = networks(seed, sizes, n_units, n_classes, integers=integers)
    numbers, masks = numpy.repeat([0, 1, 2], 6), masks_of(seed, 18, n_units)
    found = Readout(*parts, dtype=torch.float64).right(numbers, masks)
    for count, number, mask in zip(found.tolist(), numbers.tolist(), masks, strict=True):
        predicted = first_highest(cut_logits(parts, number, mask))
        assert count == int((predicted == parts[3][number]).sum())


@pytest.mark.slow
@given(st.integers(0, 10**6))
def test_ties_are_exact_in_single_precision_too(seed: int) -> None:
    parts = networks(seed, [40], 12, 4, integers=True)
    masks = masks_of(seed, 10, 12)
    found = Readout(*parts).right(numpy.zeros(10, dtype=numpy.intp), masks)
    expected = [int((first_highest(cut_logits(parts, 0, mask)) == parts[3][0]).sum()) for mask in masks]
    assert found.tolist() == expected


def test_of_an_empty_network_with_equal_biases_the_first_class_wins() -> None:
    hidden, labels = torch.ones(3, 5), torch.tensor([0, 1, 2])
    empty = numpy.zeros((1, 5), dtype=numpy.bool_)
    found = Readout([hidden], [torch.ones(3, 5)], [torch.zeros(3)], [labels])
    assert found.right(numpy.array([0]), empty).tolist() == [1]
    assert found.accuracy(numpy.array([0]), empty).tolist() == pytest.approx([100 / 3])


def test_single_precision_differs_by_a_sample_at_most() -> None:
    parts = networks(1, [607], 100, 7, integers=False)
    numbers, masks = numpy.zeros(300, dtype=numpy.intp), masks_of(1, 300, 100)
    single = Readout(*parts).right(numbers, masks)
    double = Readout(*parts, dtype=torch.float64).right(numbers, masks)
    assert numpy.abs(single - double).max() <= 1
    assert numpy.ptp(double) > 20


@pytest.mark.parametrize("streamed", [False, True])
def test_many_samples_and_masks_go_in_pieces(streamed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = networks(2, [50, 49], 10, 3, integers=True)
    numbers, masks = numpy.repeat([0, 1], 30), masks_of(2, 60, 10)
    whole = Readout(*parts)
    expected = whole.right(numbers, masks)
    monkeypatch.setattr(module, "BLOCK_COLUMNS", 33)
    monkeypatch.setattr(module, "BLOCK_MASKS", 4)
    if streamed:
        monkeypatch.setattr(module, "MOST_BYTES", 0)
    pieces = Readout(*parts)
    assert (pieces.blocks is None) == streamed
    assert pieces.right(numbers, masks).tolist() == expected.tolist()


def test_networks_of_one_size_as_stacked_tensors() -> None:
    parts = networks(3, [20, 20], 6, 3, integers=True)
    numbers, masks = numpy.array([0, 0, 1]), masks_of(3, 3, 6)
    stacked = Readout(*(torch.stack(tensors) for tensors in parts))
    assert stacked.right(numbers, masks).tolist() == Readout(*parts).right(numbers, masks).tolist()
    assert stacked.right(numbers[:0], masks[:0]).tolist() == []


def test_what_does_not_belong_together_is_refused() -> None:
    hidden, weights, bias, labels = (tensors[0] for tensors in networks(4, [9], 5, 3, integers=False))
    good = Readout([hidden], [weights], [bias], [labels])
    with pytest.raises(ModelError, match="ascend"):
        Readout([hidden] * 2, [weights] * 2, [bias] * 2, [labels] * 2).right(numpy.array([1, 0]), masks_of(0, 2, 5))
    with pytest.raises(ModelError, match="each of 5 units"):
        good.right(numpy.array([0]), masks_of(0, 1, 4))
    with pytest.raises(ModelError, match="classes by units"):
        Readout([hidden], [weights[:, :4]], [bias], [labels])
    with pytest.raises(ModelError, match="each sample needs a label"):
        Readout([hidden], [weights], [bias], [labels[:-1]])
    with pytest.raises(ModelError, match="at least 2 classes"):
        Readout([hidden], [weights], [bias], [labels + 3])
    with pytest.raises(ModelError, match="finite"):
        Readout([hidden * torch.inf], [weights], [bias], [labels])
    with pytest.raises(ModelError, match="as many"):
        Readout([hidden], [weights], [bias], [labels, labels])
