"""The paper's scores on hand-made layers, and which layers of a network are hidden."""

import pytest
import torch
from torch import Tensor, nn

from tests.networks import NETWORKS
from tests.surgery.samples import made
from topiarist import models
from topiarist.surgery import Scores, paper_scores
from topiarist.surgery.advice.spectra import hidden_layers, weighted_layers
from topiarist.tracing import anatomy


def diagonal(*values: float, rows: int | None = None) -> Tensor:
    """Return a matrix with these singular values, and with rows of zeros below."""
    matrix = torch.zeros(rows or len(values), len(values))
    matrix[: len(values)] = torch.diag(torch.tensor(values))
    return matrix


def test_the_scores_of_three_hand_made_layers() -> None:
    found = paper_scores([diagonal(2.0, 1.0, 0.5, 0.1), diagonal(1.0, 1.0), diagonal(0.2, 0.1)])
    assert found == (
        Scores(4, 1, 3 / 4, pytest.approx(3 / 4 / 3), 1 / 4, pytest.approx(1 / 4 / 3)),  # type: ignore[arg-type]
        Scores(2, 0, 1.0, 2 / 3, 0.0, 0.0),
        Scores(2, 2, 0.0, 0.0, 1.0, 1.0),
    )


def test_a_layer_without_information_can_go_wherever_it_stands() -> None:
    first, second = paper_scores([diagonal(0.1, 0.1), diagonal(0.1, 5.0)])
    assert (first.remove_layer, second.remove_layer) == (1.0, 0.5)


def test_more_units_than_inputs_are_too_many() -> None:
    (found,) = paper_scores([diagonal(3.0, 2.0, rows=8)])
    assert (found.units, found.negligible, found.remove_neurons) == (8, 6, 0.75)


def test_a_convolution_is_the_matrix_of_its_patches() -> None:
    weight = torch.zeros(3, 2, 1, 2)
    weight.view(3, 4)[torch.arange(3), torch.arange(3)] = torch.tensor([2.0, 1.0, 0.1])
    assert paper_scores([weight])[0].negligible == 1


def test_the_floors_of_the_paper_can_be_changed() -> None:
    (found,) = paper_scores([diagonal(10.0, 0.2)], absolute=0.1, relative=0.03)
    assert found.negligible == 1
    assert paper_scores([diagonal(10.0, 0.2)], absolute=0.1)[0].negligible == 0


def test_no_layers_have_no_scores() -> None:
    assert paper_scores([]) == ()


def test_the_layer_that_gives_the_output_is_not_hidden() -> None:
    model = models.mlp([4, 5, 6, 3])
    found = anatomy(model, torch.zeros(2, 4))
    assert weighted_layers(model, found) == ("hidden0", "hidden1", "output")
    assert hidden_layers(model, found) == ("hidden0", "hidden1")


def test_all_layers_that_a_sum_at_the_output_adds_are_outputs() -> None:
    class Added(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.third = nn.Linear(4, 5), nn.Linear(5, 3), nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            given: Tensor = torch.log_softmax(self.second(torch.relu(self.first(x))) + self.third(x), dim=1)
            return given

    model, x = made(Added, 2, 4)
    assert hidden_layers(model, anatomy(model, x)) == ("first",)


def test_layers_of_an_ensemble_are_hidden_as_in_its_members() -> None:
    model = models.Ensemble([models.mlp([4, 5, 3]), models.mlp([4, 6, 3])])
    hidden = hidden_layers(model, anatomy(model, torch.zeros(2, 4)))
    assert hidden == ("members.0.hidden0", "members.1.hidden0")


def test_depthwise_layers_and_branches_are_hidden() -> None:
    model, x = NETWORKS["residual"](0)
    assert hidden_layers(model, anatomy(model, x)) == ("stem", "first", "second", "depthwise", "pointwise")
