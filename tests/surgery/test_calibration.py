"""Calibration data in every form that users have them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from tests.networks import built
from topiarist.errors import DataError, ModelError, TopiaristError
from topiarist.surgery import remove
from topiarist.surgery.calibration import BATCH_SIZE, CalibrationBatches, batches_for

SAMPLES = 2 * BATCH_SIZE + 88


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def made() -> tuple[nn.Module, Tensor]:
    model, x = built(mlp, (SAMPLES, 4), seed=0)
    assert isinstance(x, Tensor)
    return model, x


def in_pieces(*tensors: Tensor) -> Iterator[Any]:
    pieces = [torch.split(tensor, 171) for tensor in tensors]
    return iter(pieces[0]) if len(tensors) == 1 else iter(list(zip(*pieces, strict=True)))


def loader(*tensors: Tensor) -> DataLoader[Any]:
    labels = torch.arange(len(tensors[0]))
    return DataLoader(TensorDataset(*tensors, labels), batch_size=171)


FORMS: dict[str, Callable[[Tensor], Any]] = {
    "a tensor": lambda x: x,
    "a tuple of one tensor": lambda x: (x,),
    "a mapping": lambda x: {"input": x},
    "a list of batches": lambda x: list(in_pieces(x)),
    "a list of mappings": lambda x: [{"input": piece} for piece in in_pieces(x)],
    "a generator": lambda x: (piece for piece in in_pieces(x)),
    "batches with labels": lambda x: [(piece, torch.zeros(len(piece))) for piece in in_pieces(x)],
    "a loader with labels": loader,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_samples_in_the_same_order(form: str) -> None:
    model, x = made()
    batches = list(CalibrationBatches(FORMS[form](x), model, 1))
    assert len(batches) > 1
    assert torch.equal(torch.cat([(*args, *kwargs.values())[0] for args, kwargs in batches]), x)
    assert all(len(args) + len(kwargs) == 1 for args, kwargs in batches)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_can_be_read_twice(form: str) -> None:
    model, x = made()
    batches = CalibrationBatches(FORMS[form](x), model, 1)
    assert len(list(batches)) == len(list(batches)) > 1


@pytest.mark.parametrize("form", ["a tensor", "a tuple of one tensor", "a mapping"])
def test_what_holds_all_samples_is_cut_into_batches(form: str) -> None:
    model, x = made()
    sizes = [len((*args, *kwargs.values())[0]) for args, kwargs in CalibrationBatches(FORMS[form](x), model, 1)]
    assert sizes == [BATCH_SIZE, BATCH_SIZE, 88]


def test_only_as_many_parts_of_a_batch_as_the_network_takes_are_arguments() -> None:
    model, x = made()
    batch = [(x, x + 1, torch.arange(len(x)))]
    assert [len(args) for args, _ in CalibrationBatches(batch, model, 2)] == [2]


def test_samples_get_the_type_of_the_network() -> None:
    model, x = made()
    ((args, _), *_) = CalibrationBatches(x.float(), model, 1)
    assert args[0].dtype == torch.float64


def test_a_network_that_writes_into_its_input_does_not_change_the_data() -> None:
    model, x = made()
    kept = x.clone()
    for args, _ in CalibrationBatches(x, model, 1):
        args[0].zero_()
    assert torch.equal(x, kept)


def test_inputs_are_counted_as_the_example_input_has_them() -> None:
    x = torch.zeros(2, 3)
    examples = (x, (x,), (x, x), [x, x], {"x": x}, None)
    assert [batches_for(x, nn.Flatten(), example).inputs for example in examples] == [1, 1, 2, 2, 1, 1]


EMPTY: dict[str, Callable[[Tensor], Any]] = {
    "an empty list": lambda x: [],
    "an empty generator": lambda x: iter(()),
    "a tensor of no samples": lambda x: x[:0],
    "an empty mapping": lambda x: {},
    "an empty tuple": lambda x: (),
    "an empty loader": lambda x: DataLoader(TensorDataset(x[:0]), batch_size=2),
}
EMPTY_BATCHES: dict[str, Callable[[Tensor], Any]] = {
    "a tuple of no samples": lambda x: (x[:0],),
    "a mapping of no samples": lambda x: {"input": x[:0]},
    "a list of batches of no samples": lambda x: [x[:0]],
}


@pytest.mark.parametrize("form", EMPTY)
def test_empty_data_are_one_clear_error(form: str) -> None:
    model, x = made()
    with pytest.raises(DataError, match=r"^the calibration data are empty$"):
        remove(model, x[:2], units={"0": [1]}, calibration=EMPTY[form](x))


@pytest.mark.parametrize("form", EMPTY_BATCHES)
def test_batches_of_no_samples_are_one_clear_error(form: str) -> None:
    model, x = made()
    with pytest.raises(DataError, match="empty"):
        remove(model, x[:2], units={"0": [1]}, calibration=EMPTY_BATCHES[form](x))


@pytest.mark.slow
def test_an_empty_batch_among_others_changes_nothing() -> None:
    model, x = made()
    cut = [remove(model, x[:2], units={"0": [1]}, calibration=data) for data in ([x], [x, x[:0]])]
    for left, right in zip(cut[0].parameters(), cut[1].parameters(), strict=True):
        torch.testing.assert_close(left, right, atol=1e-12, rtol=0)


WRONG: dict[str, Callable[[Tensor], Any]] = {
    "another number of columns": lambda x: x[:, :3],
    "too many arguments": lambda x: (x, x),
    "an unknown name": lambda x: {"picture": x},
    "words": lambda x: ["sample"],
}


@pytest.mark.parametrize("form", WRONG)
def test_data_that_the_network_cannot_read_are_one_clear_error(form: str) -> None:
    model, x = made()
    with pytest.raises(ModelError) as caught:
        remove(model, x[:2], units={"0": [1]}, calibration=WRONG[form](x))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


class Sum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Linear(4, 5)
        self.right = nn.Linear(3, 5)
        self.head = nn.Linear(5, 2)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        given: Tensor = self.head(torch.relu(self.left(x) + self.right(y)))
        return given


def test_one_argument_where_the_network_takes_two_is_one_clear_error() -> None:
    model, (x, y) = built(Sum, (300, 4), (300, 3), seed=0)
    with pytest.raises(ModelError, match="cannot read the calibration data"):
        remove(model, (x[:2], y[:2]), units={"left": [1]}, calibration=x)


def test_arguments_of_different_lengths_are_one_clear_error() -> None:
    model, (x, y) = built(Sum, (2 * BATCH_SIZE, 4), (2 * BATCH_SIZE, 3), seed=0)
    with pytest.raises(TopiaristError):
        remove(model, (x[:2], y[:2]), units={"left": [1]}, calibration=(x, y[:BATCH_SIZE]))


def test_a_loader_that_shuffles_gives_both_networks_the_same_samples() -> None:
    model, x = made()
    shuffled = DataLoader(TensorDataset(x), batch_size=50, shuffle=True, generator=torch.Generator())
    cut = [remove(model, x[:2], units={"0": [1, 2]}, calibration=data, settling=0) for data in (x, shuffled)]
    for left, right in zip(cut[0].parameters(), cut[1].parameters(), strict=True):
        torch.testing.assert_close(left, right, atol=1e-9, rtol=0)


@pytest.mark.parametrize("form", list(FORMS)[:3])
def test_some_samples_are_spread_over_all(form: str) -> None:
    model, x = made()
    some = torch.cat(
        [(*args, *kwargs.values())[0] for args, kwargs in CalibrationBatches(FORMS[form](x), model, 1).some(50)]
    )
    assert torch.equal(some, x[:: SAMPLES // 50])
    every = CalibrationBatches(x, model, 1).some(SAMPLES + 1)
    assert sum(len(args[0]) for args, _ in every) == SAMPLES


def test_batches_of_a_users_own_are_all_read() -> None:
    model, x = made()
    assert (
        sum(len(args[0]) for args, _ in CalibrationBatches(FORMS["a list of batches"](x), model, 1).some(50)) == SAMPLES
    )
