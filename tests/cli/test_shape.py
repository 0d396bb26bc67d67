"""`topiarist shape`: what it prints, what it saves, and what it refuses in one line."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from torch import Tensor

from topiarist import load, load_data, measure
from topiarist.models import card_of

Run = Callable[..., tuple[int, str, str]]


def as_json(ran: tuple[int, str, str]) -> dict[str, Any]:
    code, out, err = ran
    assert (code, err, out.count("\n")) == (0, "", 1)
    result = json.loads(out)
    assert isinstance(result, dict)
    return result


WAYS: dict[str, str] = {
    "as it is": "",
    "angle": "--angle 30",
    "keep": "--keep 0.5",
    "multiple": "--keep 0.3 --multiple-of 4",
    "published": "--published --angle 60 --pairs 'most similar first'",
    "file size": "--budget 3kB",
    "sizes": "--max-parameters 700 --max-macs 650 --max-latency 1000",
    "loss": "--max-drop 0.05",
    "fine-tuning": "--keep 0.5 --finetune 1 --finetune-lr 0.001",
    "no teacher": "--keep 0.5 --finetune 1 --no-distil",
    "rounds": "--keep 0.5 --rounds 2 --finetune 1",
    "rewinding": "--keep 0.5 --rewind 2",
    "genetic": "--method genetic --penalty 50 --population 10 --generations 3",
    "refitted": "--method genetic --fitness refitted --penalty 1 --population 10 --generations 3",
    "published genetic": "--method genetic --published --population 10 --generations 3",
    "front": "--method genetic-front --population 10 --generations 3 --judged-on training",
    "sparsity": "--method magnitude --sparsity 0.5 --finetune 1",
    "packed size": "--method magnitude --budget 2kB --finetune 2",
    "packed size, 8 bits": "--method magnitude --budget 1500B --bits 8 --finetune 2",
    "whole units": "--method magnitude --units --sparsity 0.5 --finetune 2 --no-distil",
    "fewer parameters": "--method magnitude --units --max-parameters 700 --finetune 2",
    "pattern": "--method magnitude --pattern 2:4 --finetune 2",
    "pruning by loss": "--method magnitude --max-drop 0.2 --finetune 1",
    "pruning and rewinding": "--method magnitude --sparsity 0.5 --rewind 1",
    "movement": "--method magnitude --score movement --scope global --schedule linear --finetune 2",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_program_gets_all_figures_and_the_file_is_what_they_say(
    command: Run, digits_model: Path, tmp_path: Path, way: str
) -> None:
    out = tmp_path / "small.safetensors"
    result = as_json(command("shape", digits_model, "digits", *shlex.split(WAYS[way]), "--out", out, "--json"))
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


def test_measuring_what_was_saved_says_the_same(command: Run, digits_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "small.safetensors"
    result = as_json(command("shape", digits_model, "digits", "--keep", 0.5, "--out", out, "--json"))
    measured = as_json(command("measure", out, "digits", "--json"))
    for name in ("accuracy", "log_loss", "parameters", "macs", "file_kb"):
        assert measured[name] == result["after"][name]


def test_people_get_a_table_and_nothing_is_written_unasked(
    command: Run, digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = command("shape", digits_model, "digits", "--keep", 0.5)
    assert (code, err) == (0, "")
    for words in ("accuracy", "parameters", "KB on disk", "MACs", "ms a sample", "units of hidden0", "smaller", "why"):
        assert words in out
    assert "saved" not in out and not list(tmp_path.iterdir())
    place = tmp_path / "small.safetensors"
    code, out, _ = command("shape", digits_model, "digits", "--keep", 0.5, "--out", place)
    assert code == 0 and str(place) in out and place.is_file()


def test_budgets_are_kept(command: Run, digits_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "small.safetensors"
    as_json(command("shape", digits_model, "digits", "--budget", "4kB", "--out", out, "--json"))
    assert out.stat().st_size <= 4096
    result = as_json(command("shape", digits_model, "digits", "--max-drop", 0.02, "--json"))
    assert result["score"]["after"] >= result["score"]["before"] - 0.02


def test_magnitude_prunes_as_asked(command: Run, digits_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "small.safetensors"
    words = ("--method", "magnitude", "--finetune", 2, "--out", out, "--json")

    def kernels(*others: object) -> list[Tensor]:
        result = as_json(command("shape", digits_model, "digits", *words, *others))
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
        result = as_json(
            command("shape", digits_model, "digits", "--method", "factorisation", *words, "--out", out, "--json")
        )
        assert {edit["kind"] for edit in result["plan"]["edits"]} == {"factorise"}
        found = measure(load(out), load_data("digits"), latency=False, path=out).to_json()
        for name in ("accuracy", "parameters", "macs", "file_kb"):
            assert result["after"][name] == found[name]
        limits = {"--max-parameters": "parameters", "--max-macs": "macs", "--budget": "file_kb"}
        for option, limit in zip(words[::2], words[1::2], strict=True):
            if option in limits:
                assert found[limits[str(option)]] <= float(str(limit).removesuffix("kB"))


def test_the_seed_decides(command: Run, digits_model: Path) -> None:
    words = ("--method", "genetic", "--penalty", 50, "--population", 10, "--generations", 3, "--json")
    first, again, other = (
        as_json(command("shape", digits_model, "digits", *words, "--seed", seed))["plan"] for seed in (1, 1, 2)
    )
    assert first == again != other


def test_weights_are_rewound_to_those_of_a_file(command: Run, digits_model: Path, tmp_path: Path) -> None:
    early = tmp_path / "early.safetensors"
    words = ("--hidden", 16, "--epochs", 3, "--dropout", 0.2, "--until-epoch", 1, "--out", early)
    assert command("train", "digits", *words)[0] == 0
    shaped = as_json(command("shape", digits_model, "digits", "--keep", 0.5, "--rewind", 1, "--early", early, "--json"))
    assert shaped["units"]["hidden0"]["after"] == 8


def test_a_table_with_text_and_gaps(command: Run, flowers: Path, flowers_model: Path) -> None:
    result = as_json(command("shape", flowers_model, flowers, "--target", "kind", "--keep", 0.5, "--json"))
    assert result["after"]["samples"] == 30 and result["after"]["accuracy"] >= 0.8


Case = tuple[str, str]
REFUSED: list[Case] = [
    ("{m} digits --angle 95", "--angle must be less than or equal to 90"),
    ("{m} digits --angle=-1", "--angle must be greater than or equal to 0"),
    ("{m} digits --angle nan", "--angle must be a finite number"),
    ("{m} digits --keep 0", "--keep must be greater than 0"),
    ("{m} digits --keep 1.5", "--keep must be less than or equal to 1"),
    ("{m} digits --angle 10 --keep 0.5", "--angle and --keep both say where to stop"),
    ("{m} digits --method genetic --penalty=-1", "--penalty must be greater than or equal to 0"),
    ("{m} digits --method best", "'best' is not one of"),
    ("{m} digits --penalty 5", "--penalty belongs to --method genetic, not to distinctiveness"),
    ("{m} digits --population 10", "--population belongs to --method genetic"),
    ("{m} digits --method genetic --angle 10", "--angle belongs to --method distinctiveness, not to genetic"),
    ("{m} digits --method genetic --rounds 2", "--rounds belongs to --method distinctiveness"),
    ("{m} digits --method genetic-front --penalty 5", "--penalty belongs to --method genetic"),
    ("{m} digits --method genetic-front --published", "--published belongs to"),
    ("{m} digits --method genetic --published --fitness refitted", "not the paper's"),
    ("{m} digits --method genetic --published --judged-on held-out", "judged on the training samples"),
    ("{m} digits --pairs 'most similar first'", "belongs to the published method"),
    ("{m} digits --published --keep 0.5", "one sweep"),
    ("{m} digits --max-parameters 3", "the nearest network has 85 parameters, the budget is 3"),
    ("{m} digits --budget 100B", "KB on disk, the budget is"),
    ("{m} digits --sparsity 0.5", "--sparsity belongs to --method magnitude, not to distinctiveness"),
    ("{m} digits --bits 8", "--bits belongs to --method magnitude"),
    ("{m} digits --units", "--units belongs to --method magnitude"),
    ("{m} digits --method genetic --pattern 2:4", "--pattern belongs to --method magnitude, not to genetic"),
    ("{m} digits --method magnitude --angle 20", "--angle belongs to --method distinctiveness, not to magnitude"),
    ("{m} digits --method magnitude --rounds 2", "--rounds belongs to --method distinctiveness"),
    ("{m} digits --method magnitude --sparsity 1", "--sparsity must be less than 1"),
    ("{m} digits --method magnitude --sparsity=-0.1", "--sparsity must be greater than or equal to 0"),
    ("{m} digits --method magnitude --sparsity nan", "--sparsity must be a finite number"),
    ("{m} digits --method magnitude --sparsity half", "'--sparsity': it must be a valid number"),
    ("{m} digits --method magnitude --bits 4", "'4' is not one of '32', '16', '8'"),
    ("{m} digits --method magnitude --schedule cubic", "'cubic' is not one of"),
    ("{m} digits --method magnitude --scope all", "'all' is not one of"),
    ("{m} digits --method magnitude --score size", "'size' is not one of"),
    ("{m} digits --method magnitude --pattern 2", "a pattern is written like 2:4; found '2'"),
    ("{m} digits --method magnitude --pattern=-2:4", "a pattern is written like 2:4; found '-2:4'"),
    ("{m} digits --method magnitude --pattern 4:2", "makes 2 of 4 weights zero, of 1024 at most; found (4, 2)"),
    ("{m} digits --method magnitude --pattern 0:4", "makes 2 of 4 weights zero, of 1024 at most; found (0, 4)"),
    ("{m} digits --method magnitude --pattern 2:4 --sparsity 0.5", "a pattern says itself how many weights go"),
    ("{m} digits --method magnitude --pattern 2:4 --units", "a pattern says itself how many weights go"),
    ("{m} digits --method magnitude --pattern 2:4 --scope global", "a pattern says itself how many weights go"),
    ("{m} digits --method magnitude --sparsity 0.5 --budget 2kB", "both say where to stop"),
    ("{m} digits --method magnitude --published --budget 2kB", "both say where to stop"),
    ("{m} digits --method magnitude --pattern 2:4 --max-drop 0.1", "both say where to stop"),
    ("{m} digits --method magnitude --max-parameters 500", "a limit on parameters needs units"),
    ("{m} digits --method magnitude --max-macs 500", "a limit on multiply-accumulates needs units"),
    ("{m} digits --method magnitude --max-latency 1", "needs units"),
    ("{m} digits --method magnitude --budget 100B --finetune 1", "32 bits a weight, has"),
    ("{m} digits --method magnitude --units --max-parameters 20 --finetune 1", "parameters, the budget is 20"),
    ("{m} digits --method magnitude --budget 1kB --max-drop 0 --finetune 1", "points are lost and 0 are allowed"),
    ("{m} digits --method magnitude --rewind 3", "cannot go on from epoch 3"),
    ("{m} digits --method magnitude --finetune 0", "greater than or equal to 1; found '0'"),
    ("{m} digits --method factorisation --keep 1.5", "--keep must be less than or equal to 1"),
    ("{m} digits --method factorisation --keep 0", "--keep must be greater than 0"),
    (
        "{m} digits --method factorisation --angle 5",
        "--angle belongs to --method distinctiveness, not to factorisation",
    ),
    ("{m} digits --method factorisation --published", "--published belongs to"),
    ("{m} digits --method factorisation --space hidden0", "--space belongs to the methods that cut units"),
    ("{m} digits --method factorisation --keep 0.9 --max-parameters 900", "both say where to stop"),
    ("{m} digits --method factorisation --max-parameters 3", "parameters, the budget is 3"),
    ("{m} digits --method genetic --keep 0.5", "--keep belongs to --method distinctiveness and factorisation, not to"),
    ("{m} digits --max-macs 1", "multiply-accumulates, the budget is 1"),
    ("{m} digits --max-latency 0.000001", "ms a sample, the budget is"),
    ("{m} digits --max-parameters 100 --max-drop 0", "points are lost and 0 are allowed"),
    ("{m} digits --budget much", "a size is written like 500kB or 1.5MB; found 'much'"),
    ("{m} digits --budget=-5kB", "a size is written like 500kB or 1.5MB"),
    ("{m} digits --budget 0kB", "--budget must be greater than 0"),
    ("{m} digits --max-parameters 0", "--max-parameters"),
    ("{m} digits --max-drop 1", "--max-drop must be less than 1"),
    ("{m} digits --max-drop=-0.1", "--max-drop must be greater than or equal to 0"),
    ("{m} digits --max-latency 0", "--max-latency must be greater than 0"),
    ("{m} digits --angle 20 --budget 5kB", "both say where to stop"),
    ("{m} digits --published --budget 5kB", "both say where to stop"),
    ("{m} digits --keep 0.5 --rounds 3", "--rounds above 1 needs training"),
    ("{m} digits --rounds 0", "greater than or equal to 1; found '0'"),
    ("{m} digits --keep 0.5 --rewind 3", "cannot go on from epoch 3"),
    ("{m} digits --keep 0.5 --early {m}", "--early belongs to --rewind"),
    ("{m} digits --keep 0.5 --rewind 1 --finetune 1", "--finetune and --rewind both train"),
    ("{m} digits --keep 0.5 --finetune-lr 0.1", "--finetune-lr belongs to --finetune"),
    ("{m} digits --keep 0.5 --finetune 1 --finetune-lr 0", "--finetune-lr must be greater than 0"),
    ("{m} digits --keep 0.5 --finetune 0", "greater than or equal to 1; found '0'"),
    ("{m} digits --keep 0.5 --rewind 1 --early {d}/other.safetensors", "not of the structure"),
    ("{m} digits --keep 0.5 --rewind 1 --early {d}/absent.safetensors", "there is no such file"),
    ("{m} digits --keep 0.5 --out {d}/absent/small.safetensors", "there is no folder"),
    ("{m} digits --keep 0.5 --out {d}/small.pt", "--out must end in .safetensors"),
    ("{d}/absent.safetensors digits", "there is no such file"),
    ("{d}/damaged.safetensors digits", "the file is damaged"),
    ("{d}/short.safetensors digits", "not a whole .safetensors file"),
    ("{m} {d}/other.npz", "shape"),
    ("{m} {d}/absent.csv", "no such file or folder"),
    ("{m} iris", "iris"),
    ("{m}", "Missing argument 'DATA'"),
    ("{m} digits --into os:getcwd", "must return an nn.Module"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, command: Run, digits_model: Path) -> Path:
    made = tmp_path_factory.mktemp("shape")
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
        ("{m} digits --method magnitude --space hidden0", "--space belongs to the methods that cut units"),
        ("{m} digits --method magnitude --finetune 1 --pattern 2:99999999999999999999", "pattern"),
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
    code, out, err = command("shape", *words)
    assert (code, out) == (2, ""), err
    assert err.startswith("topiarist: ") and err.endswith("\n") and err.count("\n") == 1, err
    assert "Traceback" not in err and said in err
    assert contents(folder, tmp_path, digits_model.parent) == before
