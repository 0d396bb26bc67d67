"""What follows from a declaration: cells, their order, labels, hashes and seeds."""

from hashlib import sha256
from itertools import product
from math import prod
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from topiarist.errors import SettingsError, TopiaristError
from topiarist.methods import Distinctiveness
from topiarist.study.declaration import Declaration
from topiarist.study.study import Study
from topiarist.study.treatment import treatment

HALF: dict[str, Any] = {"name": "distinctiveness", "keep_fraction": 0.5}
REWINDING: dict[str, Any] = {**HALF, "retraining": {"kind": "rewinding"}}
SPLIT: dict[str, Any] = {"data": "iris", "model": {"hidden": [4]}, "training": {"epochs": 3}}


def hashes(**declared: Any) -> list[str]:
    return [cell.hash for cell in Declaration(**{"data": "iris", **declared}).cells]


def labels(**declared: Any) -> list[str]:
    return [configuration.label for configuration in Declaration(**{"data": "iris", **declared}).configurations]


def test_variants_grid_and_methods_are_crossed_in_the_order_declared() -> None:
    study = Declaration(
        data="iris",
        variants=[{"name": "plain"}, {"name": "normed", "model": {"batch_norm": True}}],
        grid={"model.hidden": [[8], [4, 2]], "training.learning_rate": [0.1, 0.01, 0.001]},
        methods=[{"name": "none"}, {"name": "distinctiveness", "keep_fraction": 0.25}],
        folds=3,
        seeds=[4, 2],
    )
    expected = [
        (f"{variant} · hidden {hidden} · learning_rate {rate} · {method}", seed, fold)
        for variant, hidden, rate, method, seed, fold in product(
            ["plain", "normed"],
            ["8", "4-2"],
            ["0.1", "0.01", "0.001"],
            ["none", "distinctiveness keep_fraction 0.25"],
            [4, 2],
            range(3),
        )
    ]
    assert [(cell.label, cell.seed, cell.fold) for cell in study.cells] == expected
    assert len({cell.hash for cell in study.cells}) == len(expected) == 2 * 2 * 3 * 2 * 2 * 3
    last = study.cells[-1]
    assert last.choices == {
        "variant": "normed",
        "hidden": "4-2",
        "learning_rate": "0.001",
        "method": "distinctiveness keep_fraction 0.25",
    }
    assert (last.settings.model.hidden, last.settings.model.batch_norm) == ((4, 2), True)
    assert last.settings.training.learning_rate == 0.001
    assert last.settings.method == treatment(name="distinctiveness", keep_fraction=0.25)
    assert last.settings.method.method == Distinctiveness(keep_fraction=0.25)


def test_nothing_to_compare_is_one_cell() -> None:
    (cell,) = Declaration(data="iris").cells
    assert (cell.label, cell.fold, cell.folds, cell.seed, dict(cell.choices)) == ("as declared", None, None, 0, {})
    assert cell.settings.data.location == "iris"


def test_the_hash_of_a_cell_never_changes() -> None:
    """Golden: a ledger of today is found again by the cells of tomorrow."""
    first = Declaration(**SPLIT, folds=3, seeds=[7]).cells[0]
    text = (
        '{"fold":0,"folds":3,"seed":7,"settings":{"data":{"location":"iris"},"model":{"hidden":[4]},'
        '"training":{"epochs":3}}}'
    )
    assert first.hash == sha256(text.encode()).hexdigest()
    assert first.hash == "54d86b1375178e4621d3283f7d00b841a3994d64fb311170a1717acdb3dffc2e"
    assert first.training_seed == 604079267670895024


@pytest.mark.parametrize(
    "default",
    [
        {"data": {"location": "iris", "test_fraction": 0.2, "seed": 0, "scaling": None, "projection": None}},
        {"model": {"hidden": [100], "activation": "relu", "batch_norm": False, "dropout": 0.0, "options": {}}},
        {"training": {"epochs": 100, "learning_rate": 1e-3, "schedule": "constant", "batch_size": 32}},
        {"training": {"schedule": {"name": "constant"}}},
        {"methods": [{"name": "none"}]},
        {"methods": [{}]},
        {"prediction": {"monte_carlo": None}},
        {"seeds": 1},
        {"seeds": [0]},
        {"folds_of": "development"},
        {"name": "another", "stack": 3, "models": False},
        {"grid": {"training.epochs": [100]}},
        {"variants": [{"name": "all defaults", "training": {"epochs": 100}}]},
    ],
)
def test_what_is_left_as_it_is_leaves_the_hash_as_it_is(default: dict[str, Any]) -> None:
    assert hashes(**default) == hashes()


@pytest.mark.parametrize(
    "change",
    [
        {"data": "wine"},
        {"data": {"location": "iris", "seed": 1}},
        {"data": {"location": "iris", "classes": ["setosa", "virginica"]}},
        {"data": {"location": "iris", "projection": [[2, 1], [2, 1]]}},
        {"model": {"hidden": [5]}},
        {"training": {"epochs": 4}},
        {"training": {"schedule": "cosine"}},
        {"methods": [HALF]},
        {"base": {"classes": ["setosa", "virginica"], "epochs": 1}},
        {"prediction": {"monte_carlo": 5}},
        {"seeds": [1]},
        {"folds": 3},
        {"folds": 3, "folds_of": "development"},
        {"folds": 4},
        {"latency": True},
    ],
)
def test_what_decides_a_result_is_in_the_hash(change: dict[str, Any]) -> None:
    assert not set(hashes(**{**SPLIT, "folds": 2, **change})) & set(hashes(**SPLIT, folds=2))


def test_dotted_and_nested_keys_are_one() -> None:
    dotted = {"training.schedule.name": ["cosine", "constant"], "training.epochs": [1, 2], "model.hidden": [[1], [2]]}
    nested = {
        "training": {"schedule": {"name": ["cosine", "constant"]}, "epochs": [1, 2]},
        "model": {"hidden": [[1], [2]]},
    }
    assert labels(grid=dotted) == labels(grid=nested) and hashes(grid=dotted) == hashes(grid=nested)
    variant = {"name": "a", "training.schedule.name": "cosine", "model": {"hidden": [3]}}
    same = {"name": "a", "training": {"schedule": {"name": "cosine"}}, "model.hidden": [3]}
    assert hashes(variants=[variant]) == hashes(variants=[same])


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([0.001], "0.001"),
        ([1e-7], "1e-07"),
        ([[100, 50]], "100-50"),
        ([[]], "none"),
        ([True], "yes"),
        (["selu"], "selu"),
        ([{"name": "cosine", "epochs": 3}], "cosine epochs 3"),
        ([None], "None"),
    ],
)
def test_values_are_labelled_as_one_expects(values: list[Any], text: str) -> None:
    assert labels(model={"code": "a:b"}, grid={"model.options.x": values}) == [f"x {text}"]


def test_a_setting_is_called_by_its_last_name_where_that_is_clear() -> None:
    grid = {"model.options.rate": [1, 2], "training.learning_rate": [0.1, 0.2], "data.seed": [0, 1]}
    assert labels(model={"code": "a:b"}, grid=grid)[-1] == "rate 2 · learning_rate 0.2 · seed 1"
    unclear = {"model.options.epochs": [1, 2], "training.epochs": [3, 4]}
    assert labels(model={"code": "a:b"}, grid=unclear)[-1] == "model.options.epochs 2 · training.epochs 4"


def test_a_choice_replaces_what_is_declared_and_leaves_the_rest() -> None:
    study = Declaration(
        data="iris",
        training={"epochs": 7, "schedule": {"name": "exponential", "step_size": 4}},
        variants=[{"name": "a", "training": {"schedule": {"step_size": 9}}}, {"name": "b"}],
    )
    first, second = (configuration.settings.training for configuration in study.configurations)
    assert (first.epochs, first.schedule.name, first.schedule.step_size) == (7, "exponential", 9)
    assert (second.epochs, second.schedule.name, second.schedule.step_size) == (7, "exponential", 4)
    assert study.training == {"epochs": 7, "schedule": {"name": "exponential", "step_size": 4}}


@pytest.mark.slow
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 3), st.sampled_from([None, 2, 3]))
def test_as_many_cells_as_combinations_all_different(sizes: list[int], seeds: int, folds: int | None) -> None:
    paths = ["training.epochs", "training.learning_rate", "model.hidden", "data.seed"]
    values: list[list[Any]] = [[1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4], [[1], [2], [1, 1], []], [5, 6, 7, 8]]
    grid = {path: listed[:size] for path, listed, size in zip(paths, values, sizes, strict=False)}
    study = Declaration(data="iris", grid=grid, seeds=seeds, folds=folds)
    assert len(study.configurations) == len(set(labels(grid=grid))) == prod(sizes)
    assert len(study.cells) == len({cell.hash for cell in study.cells}) == prod(sizes) * seeds * (folds or 1)


def test_cells_that_differ_in_method_or_prediction_alone_share_a_training() -> None:
    study = Declaration(
        data="iris",
        model={"dropout": 0.2},
        grid={"prediction.monte_carlo": [None, 5], "training.epochs": [1, 2]},
        methods=[{}, HALF],
        seeds=2,
        folds=2,
    )
    keys: dict[tuple[Any, ...], set[str]] = {}
    for cell in study.cells:
        keys.setdefault((cell.settings.training.epochs, cell.seed, cell.fold), set()).add(cell.training_key)
    assert all(len(found) == 1 for found in keys.values())
    assert len(set.union(*keys.values())) == len(keys) == 2 * 2 * 2


def test_every_fold_and_seed_has_a_training_seed_of_its_own_and_configurations_share_it() -> None:
    study = Declaration(data="iris", grid={"training.epochs": [1, 2]}, seeds=5, folds=4)
    seeds = [cell.training_seed for cell in study.cells]
    assert seeds[:20] == seeds[20:] and len(set(seeds)) == 20
    assert all(0 <= seed < 2**62 for seed in seeds)
    assert Declaration(data="iris").cells[0].training_seed not in seeds


def test_seeds_are_a_number_or_a_list() -> None:
    assert Declaration(data="iris", seeds=3).seeds == (0, 1, 2) == Declaration(data="iris", seeds=range(3)).seeds
    assert Declaration(data="iris", seeds=[5, 1]).seeds == (5, 1)


def test_a_declaration_survives_json() -> None:
    study = Study(
        data={"location": "iris", "classes": ("setosa", "virginica")},
        grid={"training": {"learning_rate": list(numpy.logspace(-3, -1, 3))}, "model.hidden": [(3,), ()]},
        methods=(HALF,),
        seeds=(1, 2),
    )
    again = Study(**study.to_json())
    assert again.to_json() == study.to_json() and [cell.hash for cell in again.cells] == [
        cell.hash for cell in study.cells
    ]


def test_a_declaration_is_frozen() -> None:
    study = Study(data="iris")
    with pytest.raises(ValidationError):
        study.seeds = (1,)  # type: ignore[misc]


@pytest.mark.parametrize(
    "declared",
    [
        {"grid": {"training.epochs": [1, 2, 1]}},
        {"grid": {"training.learning_rate": [1, 1.0]}},
        {"grid": {"model.hidden": [[100], [50], [100]]}},
        {"variants": [{"name": "a"}, {"name": "b", "training": {"epochs": 100}}]},
        {"methods": [{}, {"name": "none"}]},
        {
            "methods": [
                HALF,
                {"keep_fraction": 0.5, "name": "distinctiveness"},
            ]
        },
        {"grid": {"method.keep_fraction": [0.1, 0.2]}, "methods": [{"name": "distinctiveness", "keep_fraction": 0.3}]},
    ],
)
def test_configurations_that_are_the_same_are_refused(declared: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=r"two configurations are the same: '.*' and '.*'") as caught:
        Declaration(data="iris", **declared)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "declared",
    [
        {"variants": [{"name": "a", "model": {"hidden": [4]}}, {"name": "a", "model": {"hidden": [8]}}]},
        {"grid": {"training.learning_rate": [0.12345671, 0.12345672]}},
        {"model": {"code": "a:b"}, "grid": {"model.options.x": [1, 1.0]}},
        {"model": {"code": "a:b"}, "grid": {"model.options.x": [1, "1"]}},
        {"model": {"code": "a:b"}, "grid": {"model.options.x": [True, "yes"]}},
    ],
)
def test_no_two_configurations_have_one_label(declared: dict[str, Any]) -> None:
    try:
        found = labels(**declared)
    except SettingsError:
        return
    assert len(set(found)) == len(found)


def test_every_choice_has_a_label() -> None:
    assert labels(methods=[{}, HALF]) == [
        "none",
        "distinctiveness keep_fraction 0.5",
    ]


@pytest.mark.parametrize("name", ["variant", "method"])
def test_no_axis_takes_the_place_of_another(name: str) -> None:
    study = Declaration(
        data="iris",
        model={"code": "a:b"},
        variants=[{"name": "x"}, {"name": "y", "training.epochs": 3}],
        grid={f"model.options.{name}": [1, 2]},
        methods=[{}, HALF],
    )
    assert len(study.configurations) == 2 * 2 * 2


def test_a_setting_is_in_the_grid_once() -> None:
    with pytest.raises(SettingsError, match="epochs"):
        Declaration(data="iris", grid={"training.epochs": [1, 2], "training": {"epochs": [3, 4]}})


@pytest.mark.parametrize(
    "grid", [{"training.epochs": range(1, 4)}, {"training.epochs": [numpy.int64(3), numpy.int64(4)]}]
)
def test_a_study_that_can_be_made_can_be_written_down(grid: dict[str, Any]) -> None:
    study = Study(data="iris", grid=grid)
    assert Study(**study.to_json()).to_json() == study.to_json()


@pytest.mark.parametrize("declared", [{"model": {"self": 1}}, {"grid": {"training.self": [1, 2]}}])
def test_there_is_no_setting_called_self(declared: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="no such setting"):
        Declaration(data="iris", **declared)


def test_too_many_seeds_are_refused() -> None:
    with pytest.raises(TopiaristError, match="seeds"):
        Declaration(data="iris", seeds=10**15)


def test_a_seed_is_one_that_the_ledger_can_hold() -> None:
    with pytest.raises(TopiaristError, match="seeds"):
        Declaration(data="iris", seeds=[2**63])


@pytest.mark.parametrize(
    ("declared", "key", "said"),
    [
        ({"data": 3}, "data", "must be a valid dictionary"),
        ({"data": ["iris", "wine"]}, "data", "must be a valid dictionary"),
        ({"data": {}}, "data.location", "required"),
        ({"data": ""}, "data.location", "at least 1 character"),
        ({"data": {"location": "iris", "seed": -1}}, "data.seed", "greater than or equal to 0"),
        ({"data": {"location": "iris", "test_fraction": 1.0}}, "data.test_fraction", "less than 1"),
        ({"data": {"location": "iris", "scaling": "standard"}}, "data.scaling", "'zscore'"),
        ({"data": {"location": "iris", "samples": 1}}, "data.samples", "greater than or equal to 2"),
        ({"data": {"location": "iris", "projection": [[4, 0]]}}, "data.projection.0.1", "greater than 0"),
        ({"model": {"hiden": [3]}}, "model.hiden", "no such setting"),
        ({"model": {"hidden": ["x"]}}, "model.hidden.0", "valid integer"),
        ({"model": {"hidden": "100"}}, "model.hidden", "valid tuple"),
        ({"model": {"dropout": 1.0}}, "model.dropout", "less than 1"),
        ({"model": {"options": {"a": 1}}}, "model", "options belongs to vgg and inception and code, not"),
        ({"model": {"code": "a:b", "hidden": [3]}}, "model", "hidden has no effect"),
        ({"model": {"family": "vgg", "hidden": [3]}}, "model", "hidden belongs to mlp, not to a network of the family"),
        ({"model": {"family": "inception", "blocks": [3]}}, "model", "has 3 blocks; found 1"),
        ({"data": {"location": "iris", "mixing": {"pieces": 0}}}, "data.mixing.pieces", "greater than or equal to 1"),
        ({"training": {"epochs": -1}}, "training.epochs", "greater than or equal to 0"),
        ({"training": {"learning_rate": float("nan")}}, "training.learning_rate", "finite"),
        ({"training": {"learning_rate": float("inf")}}, "training.learning_rate", "finite"),
        ({"training": {"seed": 1}}, "training.seed", "use the study's seeds"),
        ({"training": {"nesterov": True}}, "training", "nesterov needs"),
        ({"base": {"epochs": 1}}, "base.classes", "required"),
        ({"base": {"classes": ["a", "b"], "epochs": 0}}, "base.epochs", "greater than or equal to 1"),
        ({"prediction": {"monte_carlo": 1}}, "prediction.monte_carlo", "greater than or equal to 2"),
        ({"method": {"name": "none"}}, "method", "no such setting"),
        ({"methods": [{}, REWINDING]}, "methods.1.retraining.rewinding.epoch", "required"),
        ({"methods": [{"name": "none", "keep_fraction": 0.5}]}, "methods.0.keep_fraction", "no such setting"),
        ({"methods": [{"name": "none", "method": {}}]}, "methods.0.method", "no such setting"),
        ({"methods": [{"budget": {"parameters": 3}}]}, "methods.0.budget", "no such setting"),
        ({"methods": [{"name": ["none"]}]}, "methods.0.name", "must be one of none"),
        ({"methods": [{**HALF, "published": True}]}, "methods.0.published", "no such setting"),
        ({"methods": [{**HALF, "angle_degrees": 3}]}, "methods.0", "both decide where to stop"),
        (
            {"methods": [{}, {"name": "distinctiveness", "keep_fraction": 2}]},
            "methods.1.keep_fraction",
            "less than or equal to 1",
        ),
        ({"methods": [{"name": "chop"}]}, "methods.0.name", "must be one of none, distinctiveness, genetic,"),
        ({"methods": ["none"]}, "methods.0", "valid dictionary"),
        ({"variants": [{"model": {"hidden": [3]}}]}, "variants.0", "needs a name"),
        ({"variants": [{"name": 3}]}, "variants.0", "needs a name"),
        ({"variants": ["a"]}, "variants.0", "valid dictionary"),
        ({"variants": [{"name": "a", "modell": {"x": 1}}]}, "variants.0", "names no setting of a section"),
        ({"variants": [{"name": "a", "training": 3}]}, "variants.0", "names no setting of a section"),
        ({"variants": [{"name": "a"}, {"name": "b", "model": {"hidden": 3}}]}, "variants.1.model.hidden", "tuple"),
        ({"variants": [{"name": "a", "training": {"seed": 2}}]}, "variants.0.training.seed", "the study's seeds"),
        (
            {"variants": [{"name": "a", "training.schedule.name": "slow"}]},
            "variants.0.training.schedule.name",
            "'cosine'",
        ),
        ({"grid": {"training.schedule.name": ["slow"]}}, "grid.training.schedule.name", "'cosine'"),
        ({"grid": {"training.epochs": 5}}, "grid.training.epochs", "must list the values"),
        ({"grid": {"training.epochs": []}}, "grid.training.epochs", "must list the values"),
        ({"grid": {"training.epochs": "12"}}, "grid.training.epochs", "must list the values"),
        ({"grid": {"training.epochs": [1, -1]}}, "grid.training.epochs", "greater than or equal to 0; found -1"),
        ({"grid": {"training.epoch": [1]}}, "grid.training.epoch", "no such setting"),
        ({"grid": {"training": {"epochs": [1, "x"]}}}, "grid.training.epochs", "valid integer"),
        ({"grid": {"epochs": [1]}}, "grid.epochs", "names no setting of a section"),
        ({"grid": {"folds": [2, 3]}}, "grid.folds", "names no setting of a section"),
        ({"grid": {"": [1]}}, "grid.", "names no setting of a section"),
        ({"grid": {"training": [1]}}, "grid.training", "names no setting of a section"),
        ({"folds": 1}, "folds", "greater than or equal to 2"),
        ({"folds_of": "some"}, "folds_of", "'all' or 'development'"),
        ({"seeds": 0}, "seeds", "number of seeds"),
        ({"seeds": -3}, "seeds", "number of seeds"),
        ({"seeds": []}, "seeds", "number of seeds"),
        ({"seeds": [1, 1]}, "seeds", "number of seeds"),
        ({"seeds": [0, -1]}, "seeds", "number of seeds"),
        ({"seeds": True}, "seeds", "valid tuple"),
        ({"seeds": [0, 1.5]}, "seeds.1", "valid integer"),
        ({"stack": 0}, "stack", "greater than or equal to 1"),
        ({"latency": "perhaps"}, "latency", "valid boolean"),
        ({"name": ""}, "name", "at least 1 character"),
        ({"fold": 3}, "fold", "no such setting"),
    ],
)
def test_a_bad_declaration_is_one_line_that_names_the_key(declared: dict[str, Any], key: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Study(**{"data": "iris", **declared})
    text = str(caught.value)
    assert caught.value.setting == key and said in text and "\n" not in text
    assert text.startswith((f"{key}: ", f"{key} must", f"Study: {key}: ", f"Study: {key} must"))


@pytest.mark.parametrize(
    ("declared", "key"),
    [
        ({"training": {"schedule": {"name": "slow"}}}, "training.schedule.name"),
        ({"training": {"epochs": 5, "phases": [{"epochs": 1}, {"epochs": 0}]}}, "training.phases.1.epochs"),
        ({"grid": {"training.schedule": ["cosine", "slow"]}}, "grid.training.schedule"),
    ],
)
def test_a_bad_setting_of_a_setting_is_named_too(declared: dict[str, Any], key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Study(data="iris", **declared)
    assert caught.value.setting.startswith(key)


@pytest.mark.parametrize(
    ("declared", "key"),
    [
        ({"grid": {"training.nesterov": [False, True]}}, "grid.training.nesterov"),
        ({"grid": {"training.momentum": [0.0, 0.9]}}, "grid.training.momentum"),
        ({"variants": [{"name": "a", "training": {"momentum": 0.5}}]}, "variants.0"),
        ({"model": {"code": "a:b"}, "grid": {"model.hidden": [[1], [2]]}}, "grid.model.hidden"),
    ],
)
def test_a_choice_that_clashes_with_what_is_declared_is_named(declared: dict[str, Any], key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Study(data="iris", **declared)
    assert caught.value.setting.startswith(key)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats()
    | st.text(max_size=6)
    | st.dates()
    | st.sampled_from(["iris", "distinctiveness", "cosine", "all", "a:b", 2**70, -(2**70)]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["name", "keep_fraction", "hidden", "training", "epochs", "code", "options", "schedule", "x.y", "data"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
KEYS = st.sampled_from([*Declaration.model_fields, "nonsense"])


@pytest.mark.slow
@given(st.dictionaries(KEYS, VALUES, max_size=4), st.booleans())
def test_whatever_is_declared_is_taken_or_refused_in_one_line(declared: dict[str, Any], with_data: bool) -> None:
    values = {**declared, "data": "iris"} if with_data else declared
    if isinstance(values.get("seeds"), int) and values["seeds"] > 10**6:
        return  # reported: takes the memory of as many numbers
    try:
        study = Declaration(**values)
    except TopiaristError as error:
        assert "\n" not in str(error)
    else:
        assert len(study.configurations) >= 1


def test_settings_of_batch_norm_and_leaky_relu_can_be_compared() -> None:
    grid = {"model.batch_norm_epsilon": [1e-5, 0.1], "model.leaky_slope": [0.01, 0.3]}
    model = {"activation": "leaky_relu", "batch_norm": True, "batch_norm_momentum": 0.5}
    study = Study(**{**SPLIT, "model": model, "grid": grid})
    found = [(each.settings.model.batch_norm_epsilon, each.settings.model.leaky_slope) for each in study.configurations]
    assert found == [(1e-5, 0.01), (1e-5, 0.3), (0.1, 0.01), (0.1, 0.3)]
    for wrong in ({"batch_norm_epsilon": 0}, {"batch_norm_momentum": 2}, {"leaky_slope": 1}):
        with pytest.raises(SettingsError, match=f"model.{next(iter(wrong))}: must be"):
            Study(**{**SPLIT, "model": wrong})
    with pytest.raises(SettingsError, match="leaky_slope belongs to mlp"):
        Study(**{**SPLIT, "model": {"family": "vgg", "blocks": [0, 0, 1, 1], "leaky_slope": 0.2}})
