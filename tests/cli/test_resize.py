"""`topiarist resize`: what it prints, what it saves, and what it refuses in one line."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from torch import Tensor

from topiarist import load, load_data, measure
from topiarist.cli.resize import compared
from topiarist.models import card_of

pytestmark = pytest.mark.slow

Run = Callable[..., tuple[int, str, str]]


def as_json(ran: tuple[int, str, str]) -> dict[str, Any]:
    code, out, err = ran
    assert (code, err, out.count("\n")) == (0, "", 1)
    result = json.loads(out)
    assert isinstance(result, dict)
    return result


CALLS: dict[str, str] = {
    "as it is": "distinctiveness",
    "angle": "distinctiveness --angle 30",
    "keep": "distinctiveness --keep 0.5",
    "multiple": "distinctiveness --keep 0.3 --multiple-of 4",
    "published": "published-distinctiveness --angle 60 --pairs 'most similar first'",
    "file size": "distinctiveness --max-size 3kB",
    "sizes": "distinctiveness --max-parameters 700 --max-macs 650 --max-latency 1s",
    "loss": "distinctiveness --max-drop 0.05",
    "fine-tuning": "distinctiveness --keep 0.5 --finetune 1 --finetune-lr 0.001",
    "no teacher": "distinctiveness --keep 0.5 --finetune 1 --no-distil",
    "rounds": "distinctiveness --keep 0.5 --rounds 2 --finetune 1",
    "rewinding": "distinctiveness --keep 0.5 --rewind 2",
    "genetic": "genetic --penalty 50 --population 10 --generations 3",
    "refitted": "genetic --fitness refitted --penalty 1 --population 10 --generations 3",
    "published genetic": "published-genetic --population 10 --generations 3",
    "front": "genetic-front --population 10 --generations 3 --judged-on training",
    "sparsity": "magnitude --sparsity 0.5 --finetune 1",
    "packed size": "magnitude --budget 2kB --finetune 2",
    "packed size, 8 bits": "magnitude --budget 1500B --bits 8 --finetune 2",
    "whole units": "magnitude --units --sparsity 0.5 --finetune 2 --no-distil",
    "fewer parameters": "magnitude --units --max-parameters 700 --finetune 2",
    "pattern": "magnitude --pattern 2:4 --finetune 2",
    "pruning by loss": "magnitude --max-drop 0.2 --finetune 1",
    "pruning and rewinding": "magnitude --sparsity 0.5 --rewind 1",
    "movement": "magnitude --score movement --scope global --schedule linear --finetune 2",
}


@pytest.mark.parametrize("call", CALLS)
def test_a_program_gets_all_figures_and_the_file_is_what_they_say(
    command: Run, digits_model: Path, tmp_path: Path, call: str
) -> None:
    out = tmp_path / "small.safetensors"
    method, *words = shlex.split(CALLS[call])
    result = as_json(command("resize", method, digits_model, "digits", *words, "--out", out, "--json"))
    assert {"before", "after", "units", "plan", "score", "reasons"} <= set(result)
    assert (result["model"], result["data"], result["out"]) == (str(digits_model), "digits", str(out))
    assert result["units"]["hidden0"]["before"] == 16
    small, data = load(out), load_data("digits")
    found = measure(small, data, latency=False, path=out).to_json()
    same = ("accuracy", "macro_accuracy", "parameters", "macs", "file_kb", "log_loss", "samples")
    assert {name: result["after"][name] for name in same} == {name: found[name] for name in same}
    assert len(small.hidden0.weight) == result["units"]["hidden0"]["after"]  # type: ignore[union-attr, arg-type]
    assert out.stat().st_size == round(1024 * result["after"]["file_kb"])
    before = measure(load(digits_model), data, latency=False)
    assert result["before"]["accuracy"] == before.accuracy
    assert card_of(small).training == card_of(load(digits_model)).training


@pytest.mark.usefixtures("all_steps")
def test_measuring_what_was_saved_says_the_same(command: Run, digits_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "small.safetensors"
    result = as_json(
        command("resize", "distinctiveness", digits_model, "digits", "--keep", 0.5, "--out", out, "--json")
    )
    measured = as_json(command("measure", out, "digits", "--json"))
    for name in ("accuracy", "log_loss", "parameters", "macs", "file_kb"):
        assert measured[name] == result["after"][name]


def test_people_get_a_table_and_nothing_is_written_unasked(
    command: Run, digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = command("resize", "distinctiveness", digits_model, "digits", "--keep", 0.5)
    assert (code, err) == (0, "")
    for words in (
        "accuracy",
        "parameters",
        "KB on disk",
        "MACs",
        "ms per sample",
        "units of hidden0",
        "smaller",
        "why",
    ):
        assert words in out
    assert "saved" not in out and not list(tmp_path.iterdir())
    place = tmp_path / "small.safetensors"
    code, out, _ = command("resize", "distinctiveness", digits_model, "digits", "--keep", 0.5, "--out", place)
    assert code == 0 and str(place) in out and place.is_file()


def test_budgets_are_kept(command: Run, digits_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "small.safetensors"
    as_json(command("resize", "distinctiveness", digits_model, "digits", "--budget", "4kB", "--out", out, "--json"))
    assert out.stat().st_size <= 4096
    result = as_json(command("resize", "distinctiveness", digits_model, "digits", "--max-drop", 0.02, "--json"))
    assert result["score"]["after"] >= result["score"]["before"] - 0.02


def test_magnitude_prunes_as_asked(command: Run, digits_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "small.safetensors"
    words = ("--finetune", 2, "--out", out, "--json")

    def kernels(*others: object) -> list[Tensor]:
        result = as_json(command("resize", "magnitude", digits_model, "digits", *words, *others))
        assert len(result["histories"]) == 1 and len(result["histories"][0]["epochs"]) == 2
        return [kernel.detach() for kernel in load(out).parameters() if kernel.ndim > 1]

    half = kernels("--sparsity", 0.5)
    assert sum(int((kernel == 0).sum()) for kernel in half) == (64 * 16 + 16 * 10) // 2
    pattern = kernels("--pattern", "2:4")
    assert all(bool(((kernel.view(-1, 4) == 0).sum(dim=1) == 2).all()) for kernel in pattern)
    assert [kernel.shape for kernel in kernels("--units", "--sparsity", 0.5)] == [(8, 64), (10, 8)]
    whole = out.stat().st_size
    kernels("--budget", "1500B", "--bits", 8)
    assert out.stat().st_size <= 1500 < whole and card_of(load(out)).bits == 8


def test_factorisation_thins_layers_as_asked(command: Run, digits_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "thin.safetensors"
    for words in (("--keep", 0.6), ("--max-parameters", 900, "--max-macs", 850), ("--budget", "5kB", "--finetune", 1)):
        result = as_json(command("resize", "factorisation", digits_model, "digits", *words, "--out", out, "--json"))
        assert {edit["kind"] for edit in result["plan"]["edits"]} == {"factorise"}
        found = measure(load(out), load_data("digits"), latency=False, path=out).to_json()
        for name in ("accuracy", "parameters", "macs", "file_kb"):
            assert result["after"][name] == found[name]
        limits = {"--max-parameters": "parameters", "--max-macs": "macs", "--budget": "file_kb"}
        for option, limit in zip(words[::2], words[1::2], strict=True):
            if option in limits:
                assert found[limits[str(option)]] <= float(str(limit).removesuffix("kB"))


def test_the_seed_decides(command: Run, digits_model: Path) -> None:
    words = ("--penalty", 50, "--population", 10, "--generations", 3, "--json")
    first, again, other = (
        as_json(command("resize", "genetic", digits_model, "digits", *words, "--seed", seed))["plan"]
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_weights_are_rewound_to_those_of_a_file(command: Run, digits_model: Path, tmp_path: Path) -> None:
    early = tmp_path / "early.safetensors"
    words = ("--hidden", 16, "--epochs", 3, "--dropout", 0.2, "--until-epoch", 1, "--out", early)
    assert command("train", "digits", *words)[0] == 0
    resized = as_json(
        command(
            "resize",
            "distinctiveness",
            digits_model,
            "digits",
            "--keep",
            0.5,
            "--rewind",
            1,
            "--early",
            early,
            "--json",
        )
    )
    assert resized["units"]["hidden0"]["after"] == 8


def test_a_table_with_text_and_gaps(command: Run, flowers: Path, flowers_model: Path) -> None:
    result = as_json(
        command("resize", "distinctiveness", flowers_model, flowers, "--target", "kind", "--keep", 0.5, "--json")
    )
    assert result["after"]["samples"] == 30 and result["after"]["accuracy"] >= 0.8


Case = tuple[str, str]
REFUSED: list[Case] = [
    ("distinctiveness {m} digits --angle 95", "--angle must be less than or equal to 90"),
    ("distinctiveness {m} digits --angle=-1", "--angle must be greater than or equal to 0"),
    ("distinctiveness {m} digits --angle nan", "--angle must be a finite number"),
    ("distinctiveness {m} digits --keep 0", "--keep must be greater than 0"),
    ("distinctiveness {m} digits --keep 1.5", "--keep must be less than or equal to 1"),
    ("distinctiveness {m} digits --angle 10 --keep 0.5", "--angle and --keep both decide where to stop"),
    ("genetic {m} digits --penalty=-1", "--penalty must be greater than or equal to 0"),
    ("best {m} digits", "No such command 'best'"),
    ("distinctiveness {m} digits --penalty 5", "No such option: --penalty"),
    ("distinctiveness {m} digits --population 10", "No such option: --population"),
    ("genetic {m} digits --angle 10", "No such option: --angle"),
    ("genetic {m} digits --rounds 2", "No such option: --rounds"),
    ("genetic-front {m} digits --penalty 5", "No such option: --penalty"),
    ("genetic-front {m} digits --published", "No such option: --published"),
    ("published-genetic {m} digits --fitness refitted", "'refitted' is not one of 'relative', 'absolute'"),
    ("published-genetic {m} digits --judged-on held-out", "No such option: --judged-on"),
    ("distinctiveness {m} digits --pairs 'most similar first'", "No such option: --pairs"),
    ("published-distinctiveness {m} digits --keep 0.5", "No such option: --keep"),
    ("distinctiveness {m} digits --max-parameters 3", "the nearest network has 85 parameters, the budget is 3"),
    ("distinctiveness {m} digits --budget 100B", "KB on disk, the budget is"),
    ("distinctiveness {m} digits --sparsity 0.5", "No such option: --sparsity"),
    ("distinctiveness {m} digits --bits 8", "No such option: --bits"),
    ("distinctiveness {m} digits --units", "No such option: --units"),
    ("genetic {m} digits --pattern 2:4", "No such option: --pattern"),
    ("magnitude {m} digits --angle 20", "No such option: --angle"),
    ("magnitude {m} digits --rounds 2", "No such option: --rounds"),
    ("magnitude {m} digits --sparsity 1", "--sparsity must be less than 1"),
    ("magnitude {m} digits --sparsity=-0.1", "--sparsity must be greater than or equal to 0"),
    ("magnitude {m} digits --sparsity nan", "--sparsity must be a finite number"),
    ("magnitude {m} digits --sparsity half", "'--sparsity': it must be a valid number"),
    ("magnitude {m} digits --bits 4", "'4' is not one of '32', '16', '8'"),
    ("magnitude {m} digits --schedule cubic", "'cubic' is not one of"),
    ("magnitude {m} digits --scope all", "'all' is not one of"),
    ("magnitude {m} digits --score size", "'size' is not one of"),
    ("magnitude {m} digits --pattern 2", "--pattern: two numbers are written like 2:4; found '2'"),
    ("magnitude {m} digits --pattern=-2:4", "--pattern: two numbers are written like 2:4; found '-2:4'"),
    ("magnitude {m} digits --pattern 4:2", "makes 2 of 4 weights zero, of 1024 at most; found (4, 2)"),
    ("magnitude {m} digits --pattern 0:4", "makes 2 of 4 weights zero, of 1024 at most; found (0, 4)"),
    ("magnitude {m} digits --pattern 2:4 --sparsity 0.5", "a pattern already says how many weights go"),
    ("magnitude {m} digits --pattern 2:4 --units", "a pattern already says how many weights go"),
    ("magnitude {m} digits --pattern 2:4 --scope global", "a pattern already says how many weights go"),
    ("magnitude {m} digits --sparsity 0.5 --budget 2kB", "both decide where to stop"),
    ("published-magnitude {m} digits --budget 2kB", "No such option: --budget"),
    ("magnitude {m} digits --pattern 2:4 --max-drop 0.1", "both decide where to stop"),
    ("magnitude {m} digits --max-parameters 500", "a limit on parameters needs units"),
    ("magnitude {m} digits --max-macs 500", "a limit on multiply-accumulates needs units"),
    ("magnitude {m} digits --max-latency 1", "needs units"),
    ("magnitude {m} digits --budget 100B --finetune 1", "32 bits per weight, has"),
    ("magnitude {m} digits --units --max-parameters 20 --finetune 1", "parameters, the budget is 20"),
    ("magnitude {m} digits --budget 1kB --max-drop 0 --finetune 1", "points are lost and 0 are allowed"),
    ("magnitude {m} digits --rewind 3", "cannot continue from epoch 3"),
    ("magnitude {m} digits --finetune 0", "must be greater than or equal to 1; found 0"),
    ("factorisation {m} digits --keep 1.5", "--keep must be less than or equal to 1"),
    ("factorisation {m} digits --keep 0", "--keep must be greater than 0"),
    ("factorisation {m} digits --angle 5", "No such option: --angle"),
    ("factorisation {m} digits --published", "No such option: --published"),
    ("factorisation {m} digits --space hidden0", "No such option: --space"),
    ("factorisation {m} digits --keep 0.9 --max-parameters 900", "both decide where to stop"),
    ("factorisation {m} digits --max-parameters 3", "parameters, the budget is 3"),
    ("genetic {m} digits --keep 0.5", "No such option: --keep"),
    ("distinctiveness {m} digits --max-macs 1", "multiply-accumulates, the budget is 1"),
    ("distinctiveness {m} digits --max-latency 0.000001", "ms per sample, the budget is"),
    ("distinctiveness {m} digits --max-parameters 100 --max-drop 0", "points are lost and 0 are allowed"),
    ("distinctiveness {m} digits --max-size much", "--max-size: a size is written like 500kB or 1.5MB; found 'much'"),
    ("distinctiveness {m} digits --max-size 0kB", "--max-size must be greater than 0"),
    ("distinctiveness {m} digits --max-memory 0kB", "--max-memory must be greater than 0"),
    (
        "distinctiveness {m} digits --max-latency soon",
        "--max-latency: a time is written like 2ms or 500us; found 'soon'",
    ),
    ("distinctiveness {m} digits --ignore nothing", "ignored must name layers or types of layers; found 'nothing'"),
    ("magnitude {m} digits --ignore hidden0", "No such option: --ignore"),
    ("distinctiveness {m} digits --budget much", "a size is written like 500kB or 1.5MB; found 'much'"),
    ("distinctiveness {m} digits --budget=-5kB", "a size is written like 500kB or 1.5MB"),
    ("distinctiveness {m} digits --budget 0kB", "--budget must be greater than 0"),
    ("distinctiveness {m} digits --max-parameters 0", "--max-parameters"),
    ("distinctiveness {m} digits --max-drop 1", "--max-drop must be less than 1"),
    ("distinctiveness {m} digits --max-drop=-0.1", "--max-drop must be greater than or equal to 0"),
    ("distinctiveness {m} digits --max-latency 0", "--max-latency must be greater than 0"),
    ("distinctiveness {m} digits --angle 20 --budget 5kB", "both decide where to stop"),
    ("published-distinctiveness {m} digits --max-size 5kB", "No such option: --max-size"),
    ("distinctiveness {m} digits --keep 0.5 --rounds 3", "--rounds above 1 needs training"),
    ("distinctiveness {m} digits --rounds 0", "must be greater than or equal to 1; found 0"),
    ("distinctiveness {m} digits --keep 0.5 --rewind 3", "cannot continue from epoch 3"),
    ("distinctiveness {m} digits --keep 0.5 --early {m}", "--early belongs to --rewind"),
    ("distinctiveness {m} digits --keep 0.5 --rewind 1 --finetune 1", "--finetune and --rewind both train"),
    ("distinctiveness {m} digits --keep 0.5 --finetune-lr 0.1", "--finetune-lr belongs to --finetune"),
    ("distinctiveness {m} digits --keep 0.5 --finetune 1 --finetune-lr 0", "--finetune-lr must be greater than 0"),
    ("distinctiveness {m} digits --keep 0.5 --finetune 0", "must be greater than or equal to 1; found 0"),
    ("distinctiveness {m} digits --keep 0.5 --rewind 1 --early {d}/other.safetensors", "not of the structure"),
    ("distinctiveness {m} digits --keep 0.5 --rewind 1 --early {d}/absent.safetensors", "there is no such file"),
    ("distinctiveness {m} digits --keep 0.5 --out {d}/absent/small.safetensors", "there is no folder"),
    ("distinctiveness {m} digits --keep 0.5 --out {d}/small.pt", "--out must end in .safetensors"),
    ("distinctiveness {d}/absent.safetensors digits", "there is no such file"),
    ("distinctiveness {d}/damaged.safetensors digits", "the file is damaged"),
    ("distinctiveness {d}/short.safetensors digits", "not a whole .safetensors file"),
    ("distinctiveness {m} {d}/other.npz", "shape"),
    ("distinctiveness {m} {d}/absent.csv", "no such file or folder"),
    ("distinctiveness {m} iris", "iris"),
    ("distinctiveness {m}", "Missing argument 'DATA'"),
    ("distinctiveness {m} digits --into os:getcwd", "must return an nn.Module"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, command: Run, digits_model: Path) -> Path:
    made = tmp_path_factory.mktemp("resize")
    content = digits_model.read_bytes()
    (made / "damaged.safetensors").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    (made / "short.safetensors").write_bytes(content[:-50])
    random = numpy.random.default_rng(0)
    numpy.savez(made / "other.npz", x=random.normal(size=(60, 7)), y=numpy.arange(60) % 10)
    words = ("--hidden", 12, "--epochs", 1, "--out", made / "other.safetensors")
    assert command("train", "digits", *words)[0] == 0
    return made


def contents(*folders: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for place in folders for path in sorted(place.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        *REFUSED,
        ("magnitude {m} digits --space hidden0", "No such option: --space"),
        ("magnitude {m} digits --finetune 1 --pattern 2:99999999999999999999", "pattern"),
    ],
)
def test_wrong_input_is_one_line_and_nothing_is_written(
    command: Run,
    digits_model: Path,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    words = shlex.split(call.format(m=digits_model, d=folder))
    words += [] if "--out" in words else ["--out", str(tmp_path / "small.safetensors")]
    before = contents(folder, tmp_path, digits_model.parent)
    code, out, err = command("resize", *words)
    assert (code, out) == (2, ""), err
    assert err.startswith("topiarist: ") and err.endswith("\n") and err.count("\n") == 1, err
    assert "Traceback" not in err and said in err
    assert contents(folder, tmp_path, digits_model.parent) == before


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [(0.023, 0.022, ""), (0.022, 0.023, ""), (2.0, 1.0, "2.0 × faster"), (1.0, 1.5, "1.5 × slower")],
)
def test_what_rounds_to_the_same_is_not_called_faster(before: float, after: float, said: str) -> None:
    figures = {"accuracy": 0.9, "parameters": 10, "nonzero": 10, "file_kb": 1.0, "macs": 10}
    rows = compared({**figures, "latency_ms": before}, {**figures, "latency_ms": after})
    assert rows[-1][-1] == said and rows[1][-1] == ""
