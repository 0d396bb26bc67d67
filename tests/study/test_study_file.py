"""A study from a file: what is wrong is named by its key and its line."""

import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.study.studies import SMALL, SMALL_TOML
from topiarist.errors import SettingsError, TopiaristError
from topiarist.study.study import Study, line_of

TABLES = """
name = "tables"
folds = 2
seeds = 2

[data]
location = "iris"

[training]
epochs = 2

[grid]
"model.hidden" = [[5], [4, 3]]

[[methods]]
name = "none"

[[methods]]
name = "distinctiveness"
keep_fraction = 0.5
"""


def read(folder: Path, text: str) -> Study:
    path = folder / "study.toml"
    path.write_bytes(text.encode())
    return Study.from_file(path)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(TopiaristError) as caught:
        read(folder, text)
    said = str(caught.value)
    assert said.startswith(str(folder / "study.toml")) and "\n" not in said
    return said.removeprefix(str(folder / "study.toml"))


def test_a_file_and_a_call_declare_the_same(tmp_path: Path) -> None:
    called = Study(**SMALL)
    for text in (SMALL_TOML, TABLES):
        study = read(tmp_path, text)
        assert [(cell.label, cell.hash) for cell in study.cells] == [(cell.label, cell.hash) for cell in called.cells]
    assert study.name == "tables" and read(tmp_path, SMALL_TOML).name == "study"


@pytest.mark.parametrize(
    ("lines", "line", "key"),
    [
        (['data = "iris"', "seeds = 0"], 2, "seeds"),
        (['data = "iris"', "", "# seeds = 1", "seeds = [1, 1]"], 4, "seeds"),
        (['data = "iris"', "seed = 3"], 2, "seed"),
        (['data = "iris"', "folds = 1.5"], 2, "folds"),
        (["folds = 2", "data = 3"], 2, "data"),
        (["data = 2020-01-01"], 1, "data"),
        (["folds = 2", "[data]", 'location = ""'], 3, "data.location"),
        (["folds = 2", "[data]", "seed = 1"], 2, "data.location"),
        (['data.location = "iris"', "data.seed = -1"], 2, "data.seed"),
        (['data = "iris"', "training = 3"], 2, "training"),
        (['data = "iris"', "[training]", "epochs = -1"], 3, "training.epochs"),
        (['data = "iris"', "[ training ]  # how", "  epochs=-1 # bad"], 3, "training.epochs"),
        (['data = "iris"', '["training"]', '"epochs" = -1'], 3, "training.epochs"),
        (['data = "iris"', "[training]", "#epochs = 1", "epoch = 1"], 4, "training.epoch"),
        (['data = "iris"', 'training = { batch_size = 4, schedule = "cosine", epochs = -1 }'], 2, "training.epochs"),
        (['data = "iris"', "[modell]", "hidden = [3]"], 2, "modell"),
        (['data = "iris"', "[model]", 'dropout = "x"'], 3, "model.dropout"),
        (['data = "iris"', "[model]", 'code = "a:b"', "dropout = 0.5"], 2, "model"),
        (['data = "iris"', "grid = 3"], 2, "grid"),
        (['data = "iris"', "[grid]", '"training.epochs" = 3'], 3, "grid.training.epochs"),
        (['data = "iris"', "[grid]", '"training.epochs" = [1]', '"epochs" = [3]'], 4, "grid.epochs"),
        (['data = "iris"', "[grid]", '"training.epochs" = [1, -1]'], 3, "grid.training.epochs"),
        (['data = "iris"', "[grid]", "training.epochs = [1, -1]"], 3, "grid.training.epochs"),
        (['data = "iris"', "[grid.training]", "", "epochs = [1, -1]"], 4, "grid.training.epochs"),
        (
            ['data = "iris"', "[training]", "epochs = 1", "[grid]", "training.epochs = [1, -1]"],
            5,
            "grid.training.epochs",
        ),
        (['data = "iris"', "[variants]", 'name = "a"'], 2, "variants"),
        (['data = "iris"', "[[variants]]", 'name = "a"', "[[variants]]", "training.epochs = 1"], 4, "variants.1"),
        (
            ['data = "iris"', "[[variants]]", 'name = "a"', "[[variants]]", 'name = "b"', "model.hidden = 3"],
            6,
            "variants.1.model.hidden",
        ),
        (
            ['data = "iris"', "[[variants]]", 'name = "a"', "[[variants]]", 'name = "b"', 'model = { hidden = ["x"] }'],
            6,
            "variants.1.model.hidden.0",
        ),
        (['data = "iris"', "[[methods]]", 'name = "none"', "[[methods]]", 'name = "cut"'], 5, "methods.1.name"),
        (
            ['data = "iris"', "[[methods]]", "", 'name = "distinctiveness"', "keep_fraction = 7"],
            5,
            "methods.0.keep_fraction",
        ),
        (
            ['data = "iris"', 'methods = [{ name = "distinctiveness", keep_fraction = 7 }]'],
            2,
            "methods.0.keep_fraction",
        ),
        (['data = "iris"', "[base]", "epochs = 1"], 2, "base.classes"),
        (['data = "iris"', "[prediction]", "monte_carlo = 1"], 3, "prediction.monte_carlo"),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_what_is_wrong_is_named_by_its_line(tmp_path: Path, lines: list[str], line: int, key: str, ending: str) -> None:
    said = refusal(tmp_path, ending.join(lines) + ending)
    assert said.startswith((f", line {line}: {key}: ", f", line {line}: {key} must"))


@pytest.mark.parametrize(
    ("what", "text", "line"),
    [
        (
            "a line that begins with a list",
            'data = "iris"\n[grid]\n"model.hidden" = [\n  [100],\n  [50],\n]\n"training.learning_rate" = [0.1, -1.0]\n',
            7,
        ),
        (
            "a table inside an entry of an array of tables",
            'data = "iris"\n[[variants]]\nname = "a"\n[[variants]]\nname = "b"\n[variants.model]\nhidden = ["x"]\n',
            7,
        ),
        ("a text of several lines", 'data = "iris"\nname = """\nseeds = 3\n"""\nseeds = 0\n', 5),
        ("line ends that TOML does not know", 'data = "iris"\nname = "a\u2028b"\nseeds = 0\n', 3),
        (
            "a nested setting",
            'data = "iris"\n[training]\nepochs = 5\nphases = [{ epochs = 0 }]\n',
            4,
        ),
        (
            "a nested setting",
            'data = "iris"\n[training]\nepochs = 5\n[training.schedule]\nname = "slow"\n',
            5,
        ),
    ],
)
def test_the_line_is_right_in_files_that_are_written_otherwise(tmp_path: Path, what: str, text: str, line: int) -> None:
    assert refusal(tmp_path, text).startswith(f", line {line}: ")


@pytest.mark.parametrize("text", ["folds = 2\n", "", "# nothing\n"])
def test_what_is_missing_has_no_line(tmp_path: Path, text: str) -> None:
    assert refusal(tmp_path, text) == ": data: Field required"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('data = "iris"\n[training\n', "at line 2"),
        ('data = "iris"\ndata = "wine"\n', "at line 2"),
        ('data = "iris', "is not TOML"),
        ("data = iris\n", "at line 1"),
        ("\x00", "is not TOML"),
    ],
)
def test_what_is_not_toml_is_said_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(tmp_path, text)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(SettingsError, match=f"cannot read the study {path}: "):
            Study.from_file(path)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="is not TOML"):
        Study.from_file(binary)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["x = " + "[" * 3000 + "]" * 3000, "[grid]\n" + ".".join(["a"] * 3000) + " = [1]"])
def test_a_file_that_is_too_deep_is_one_line(tmp_path: Path, text: str) -> None:
    refusal(tmp_path, f'data = "iris"\n{text}\n')


@pytest.mark.parametrize("text", ["self = 1", "[model]\nself = 1"])
def test_a_key_called_self_is_one_line(tmp_path: Path, text: str) -> None:
    refusal(tmp_path, f'data = "iris"\n{text}\n')


def test_relative_paths_start_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "table.csv").write_text("a,kind\n" + "1,x\n2,y\n" * 20)
    (tmp_path / "here" / "study.toml").write_text(
        'training.epochs = 1\n[data]\nlocation = "table.csv"\ntarget = "kind"\n'
    )
    monkeypatch.chdir(tmp_path)
    results = Study.from_file("here/study.toml").run("out")
    assert results.cells["state"].tolist() == ["done"]
    assert Study.in_folder("out").run("out").cells["state"].tolist() == ["done"]


def test_the_line_of_a_key_is_that_of_its_longest_part() -> None:
    text = "a.b = 1\n[a]\n[a.c]\nd = 1\n[[e]]\n[[e]]\nf = 1\n"
    found = {key: line_of(text, key) for key in ("a.b", "a.b.9", "a.x", "a.c.d", "e.0", "e.1.f", "e.0.f", "g", "")}
    assert found == {"a.b": 1, "a.b.9": 1, "a.x": 2, "a.c.d": 4, "e.0": 5, "e.1.f": 7, "e.0.f": 5, "g": None, "": None}


DOCUMENT = TABLES.strip()
PIECES = st.sampled_from(["[", "]", "[[", "]]", "=", '"', "'", '"""', ".", ",", "{", "}", "\n", "#", "-", "nan", "1e9"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, len(DOCUMENT)), st.integers(0, 9), PIECES), min_size=1, max_size=4))
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path: Path, changes: list[tuple[int, int, str]]) -> None:
    text = DOCUMENT
    for place, length, piece in changes:
        text = text[:place] + piece + text[place + length :]
    try:
        read(tmp_path, text)
    except TopiaristError as error:
        assert "\n" not in str(error)


def toml(value: Any) -> str:
    """Write a value as TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {toml(inner)}' for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, str):
        return f"'{value}'"
    return str(value).lower()


SCALARS = (
    st.booleans()
    | st.integers(-(10**5), 10**5)
    | st.sampled_from([2**64, -(2**64)])
    | st.floats()
    | st.text(string.ascii_letters + " .:-é", max_size=6)
)
NAMES = st.sampled_from(
    ["location", "epochs", "hidden", "name", "keep_fraction", "schedule", "model", "training", "training.epochs", "a b"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)
KEYS = ["data", "model", "training", "base", "prediction", "grid", "variants", "methods", "folds", "seeds", "stack"]


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from([*KEYS, "latency", "models", "name"]), VALUES, max_size=3))
def test_any_value_of_any_key_is_taken_or_refused_in_one_line_with_a_line(
    tmp_path: Path, declared: dict[str, Any]
) -> None:
    if isinstance(declared.get("seeds"), int) and declared["seeds"] > 10**6:
        return  # reported: takes the memory of as many numbers
    text = "".join(f"{key} = {toml(value)}\n" for key, value in {"data": "iris", **declared}.items())
    try:
        read(tmp_path, text)
    except SettingsError as error:
        assert "\n" not in str(error)
        assert not error.setting or ", line " in str(error) or error.setting.split(".")[0] not in declared


def test_an_option_that_is_infinite_stays_so_or_is_refused(tmp_path: Path) -> None:
    text = 'data = "iris"\n[model]\ncode = "a:b"\noptions = { limit = inf }\n'
    try:
        options = read(tmp_path, text).cells[0].settings.model.options
    except SettingsError:
        return
    assert options == {"limit": float("inf")}
