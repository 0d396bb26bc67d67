"""`topiarist recommend`: what it prints, that it writes nothing, and what it refuses in one line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_resize import as_json, contents
from topiarist import load, load_data
from topiarist.data import Part
from topiarist.surgery import recommend

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.slow
def test_a_recommendation_changes_and_writes_nothing(
    command: Run, digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = contents(digits_model.parent)
    words = ("recommend", digits_model, "digits")
    code, out, err = command(*words)
    assert (code, err) == (0, "")
    for said in ("space", "effective rank", "gain of growth", "hidden0", "layer", "lost if folded", "output"):
        assert said in out
    result = as_json(command(*words, "--json"))
    assert (result["model"], result["data"], result["samples"]) == (str(digits_model), "digits", 1168)
    assert set(result["spaces"]) == {"hidden0"} and set(result["layers"]) == {"hidden0", "output"}
    assert result == as_json(command(*words, "--json")) and not list(tmp_path.iterdir())
    assert contents(digits_model.parent) == before


def test_a_recommendation_of_few_samples_is_by_all_of_them(command: Run, flowers: Path, flowers_model: Path) -> None:
    words = ("--target", "kind", "--seed", 2, "--json")
    result = as_json(command("recommend", flowers_model, flowers, *words))
    network, part = load(flowers_model), load_data(flowers, target="kind").train
    assert isinstance(part, Part) and result["samples"] == len(part)
    by_hand = recommend(network, part.x[:2], calibration=part.x, labels=part.y, seed=2).to_record()
    for name, layer in by_hand["layers"].items():
        assert result["layers"][name]["singular_values"] == layer["singular_values"]
    for name, space in by_hand["spaces"].items():
        assert result["spaces"][name]["effective_rank"] == pytest.approx(space["effective_rank"], rel=1e-4)
    assert result["parameters"] == by_hand["parameters"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("{m} digits --epochs 3", "No such option: --epochs"),
        ("{m} digits --max-size 5kB", "No such option: --max-size"),
        ("{m} digits --out small.safetensors", "No such option: --out"),
        ("{m} digits --seed=-1", "'--seed': it must be greater than or equal to 0; found '-1'"),
        ("{m} iris", "iris"),
        ("{m} absent.csv", "no such file or folder"),
        ("{m}", "Missing argument 'DATA'"),
        ("absent.safetensors digits", "absent.safetensors: there is no such file"),
        ("{m} digits --into os:getcwd", "must return an nn.Module"),
    ],
)
def test_wrong_input_is_one_line(
    command: Run, digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = command("recommend", *words.format(m=digits_model).split())
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("topiarist: ") and said in err
    assert not list(tmp_path.iterdir())
