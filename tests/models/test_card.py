import copy

from torch import nn

from topiarist.data import Data
from topiarist.models import Card, attach, card_for, card_of, mlp
from topiarist.tasks import Classification


def data() -> Data:
    return Data.from_arrays([[float(i), float(i % 7)] for i in range(40)], ["no", "yes"] * 20, seed=5, scaling="zscore")


def test_a_network_without_a_card_has_an_empty_one() -> None:
    assert card_of(nn.Linear(2, 2)) == Card()


def test_a_card_is_no_part_of_the_state() -> None:
    model = nn.Linear(2, 2)
    before = list(model.state_dict()), repr(model), list(model.named_modules())
    attach(model, Card(task=Classification(("a", "b"))))
    assert card_of(model).classes == ("a", "b")
    assert (list(model.state_dict()), repr(model), list(model.named_modules())) == before


def test_a_copy_keeps_its_card_whatever_becomes_of_the_original() -> None:
    model = mlp([2, 3, 2])
    other = copy.deepcopy(model)
    attach(model, Card())
    assert card_of(model) == Card()
    assert card_of(other).spec is not None
    wide = mlp([2, 3, 2])
    assert card_of(copy.deepcopy(wide)) is card_of(wide)  # thousands of columns are not copied with a few weights


def test_what_is_not_a_card_does_not_count() -> None:
    model = nn.Linear(2, 2)
    model._topiarist_card = "mine"  # type: ignore[assignment]  # somebody else's attribute
    assert card_of(model) == Card()


def test_the_card_for_data_keeps_the_spec() -> None:
    model, task = mlp([2, 3, 2]), data()
    card = card_for(model, task)
    assert card == Card(
        spec=card_of(model).spec,
        task=Classification(("no", "yes")),
        input_shape=(2,),
        preprocessing=task.preprocessing,
        rule=task.rule,
    )
    assert card_of(model).classes is None
