"""A treatment is one flat table in a declaration and in a ledger, and its cell keeps the hash that it always had."""

import json
from typing import Any

import pytest

from topiarist.errors import SettingsError
from topiarist.measurement import Budget
from topiarist.methods import Distinctiveness, FineTuning, Genetic, Rewinding
from topiarist.study.declaration import Declaration
from topiarist.study.treatment import Treatment, treatment

FULL: dict[str, Any] = {
    "name": "genetic",
    "penalty": 2.0,
    "budget": {"parameters": 100},
    "retraining": {"kind": "fine-tuning", "epochs": 2},
}
# Ledgers name their cells by these: computed when each method still had a class of its own for studies.
HASHES: dict[str, dict[str, Any]] = {
    "d16292a5a9ac57501467a81ad1e5a1b1b7901cb478910c659514661cbd387b6a": {},
    "97c258510b7381d27ccd0f636560c0045f0528653b8f1cf70434fd71f22ad473": {
        "name": "distinctiveness",
        "keep_fraction": 0.5,
    },
    "c9c117f3a5531f10aad73b4aa4ffdf4768637c6899ffe53c9fa817dbf78b70a6": FULL,
    "774ddedf8721d7c34f3db9246691405c92f8096b0316f351e071101842b657aa": {
        "name": "genetic-front",
        "retraining": {"kind": "rewinding", "epoch": 2},
    },
    "c8d8acd10a18fffaba9f3043a3b5e1155f2d6dfd7edf3c7ebe6efba8ef330ad2": {
        "name": "factorisation",
        "keep": 0.7,
        "layers": ["hidden0"],
    },
    "0bb45d26deecc8c8e553fd77a230cc02c7902f8a028a0c7f63c0643b8f457ffe": {
        "name": "magnitude",
        "units": True,
        "budget": {"file_kb": 2.5},
    },
    "f6c12e840bf3a45061702b051ffe3ebe47c3a5fd08f3b34da1962584e2a58afe": {"name": "magnitude", "pattern": [2, 4]},
    "079dff46125e53359a17f8625aa692337cf0e42a74aada3584e5cba1a92f4239": {
        "name": "surgeon",
        "aim": "better",
        "training": {"epochs": 3},
    },
}


@pytest.mark.parametrize(("name", "method"), HASHES.items())
def test_a_cell_has_the_hash_that_it_always_had(name: str, method: dict[str, Any]) -> None:
    (cell,) = Declaration(data="iris", training={"epochs": 3}, methods=[method]).cells
    assert cell.hash == name


def test_the_form_in_a_ledger_is_one_flat_table() -> None:
    (cell,) = Declaration(data="iris", methods=[FULL]).cells
    assert cell.record["settings"]["method"] == {
        "name": "genetic",
        "penalty": 2.0,
        "budget": {"parameters": 100},
        "retraining": {"epochs": 2},
    }
    assert "method" not in Declaration(data="iris", methods=[{}]).cells[0].record["settings"]
    whole = treatment(**FULL).model_dump(mode="json")
    assert set(whole) == {"name", "budget", "retraining", *Genetic.model_fields}
    assert json.loads(treatment(**FULL).model_dump_json()) == whole


def test_a_treatment_is_a_method_and_what_resize_takes_beside_it() -> None:
    made = treatment(**FULL)
    assert made.method == Genetic(penalty=2.0)
    assert (made.budget, made.retraining) == (Budget(parameters=100), FineTuning(epochs=2))
    rewound = treatment(name="distinctiveness", retraining={"kind": "rewinding", "epoch": 3})
    assert rewound == Treatment(name="distinctiveness", method=Distinctiveness(), retraining=Rewinding(epoch=3))


def test_without_a_name_nothing_is_done() -> None:
    assert treatment() == treatment(name="none") == Treatment()
    assert Treatment().method is None and Treatment().model_dump(exclude_defaults=True) == {"name": "none"}


@pytest.mark.parametrize(
    ("table", "setting", "said"),
    [
        ({"name": "cut", "keep": 0.5}, "name", "must be one of none, distinctiveness, genetic, .*; found 'cut'"),
        ({"name": 3}, "name", "must be one of none, .*; found 3"),
        ({"name": "distinctiveness", "keep": 0.5}, "keep", "there is no such setting"),
        ({"name": "distinctiveness", "published": True}, "published", "there is no such setting"),
        ({"name": "distinctiveness", "budget": {"size_kb": 3}}, "budget.size_kb", "there is no such setting"),
        ({"name": "distinctiveness", "retraining": {"kind": "luck"}}, "retraining", "luck"),
        ({"keep_fraction": 0.5}, "keep_fraction", "there is no such setting"),
        ({"name": "surgeon", "retraining": {"kind": "fine-tuning"}}, "", "trains by its own settings: give training"),
    ],
)
def test_what_is_wrong_is_one_line(table: dict[str, Any], setting: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said) as refused:
        treatment(**table)
    assert refused.value.setting == setting and "\n" not in str(refused.value)
