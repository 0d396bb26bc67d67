import json
from typing import Any

import pytest
from hypothesis import given, strategies

from topiarist.errors import ModelError
from topiarist.models import ACTIVATIONS, build, card_of, mlp

SETTINGS = strategies.fixed_dictionaries(
    {
        "sizes": strategies.lists(strategies.integers(1, 9), min_size=2, max_size=5),
        "activation": strategies.sampled_from(list(ACTIVATIONS)),
        "batch_norm": strategies.sampled_from([False, True, "before", "after"]),
        "dropout": strategies.sampled_from([0.0, 0.25]),
        "dropout_layers": strategies.integers(0, 4),
        "input_dropout": strategies.sampled_from([0.0, 0.1]),
    }
)


@given(SETTINGS)
def test_a_spec_that_went_through_json_builds_the_same_network(settings: dict[str, Any]) -> None:
    model = mlp(**settings)
    spec = card_of(model).spec
    again = build(json.loads(json.dumps(spec)))
    assert repr(again) == repr(model) and card_of(again).spec == spec
    for (name, value), (other, copied) in zip(model.state_dict().items(), again.state_dict().items(), strict=True):
        assert name == other and value.equal(copied)


@pytest.mark.parametrize("family", ["tree", None, 3, [], {}])
def test_an_unknown_family_is_refused(family: Any) -> None:
    with pytest.raises(ModelError, match=r"no family of networks is called .*: known are mlp"):
        build({"family": family, "sizes": [3, 2]})


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"sizes": None},
        {"sizes": [3, 2], "depth": 1},
        {"sizes": [3, 2], "dropout": "x"},
        {"sizes": [3, 2], "activation": []},
    ],
)
def test_a_spec_that_does_not_fit_its_family_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="the spec of a mlp network cannot be read"):
        build({"family": "mlp", **settings})


def test_the_spec_is_left_alone() -> None:
    spec = {"family": "mlp", "sizes": [3, 2]}
    build(spec)
    assert spec == {"family": "mlp", "sizes": [3, 2]}
