"""The parts of the coverage benchmark that decide what its tables say."""

from pathlib import Path

import pytest
import torch
from torch import nn

from benchmarks.coverage import chosen
from benchmarks.covering.notebook import Notebook
from benchmarks.covering.ours import every_second_unit, measure_ours
from benchmarks.covering.outputs import one_line, relative_difference
from benchmarks.covering.records import DONE, Check, OurAttempt, Results, RivalAttempt, Row
from benchmarks.covering.rival import first_reached, last_run, measure_rival
from benchmarks.covering.tables import write_markdown
from benchmarks.zoo import NETWORKS, Entry, Made, own
from topiarist import anatomy


def attempt(before: int, after: int, kept: bool = True) -> OurAttempt:
    return OurAttempt(stage=DONE, parameters_before=before, parameters_after=after, shapes_kept=kept)


def test_useful_needs_a_quarter_gone_and_the_same_shapes() -> None:
    assert attempt(100, 75).useful
    assert not attempt(100, 76).useful
    assert not attempt(100, 10, kept=False).useful
    assert not OurAttempt(parameters_before=100).useful


def test_differences_are_relative_and_other_shapes_are_infinitely_far() -> None:
    expected = [torch.tensor([1.0, -100.0])]
    assert relative_difference([torch.tensor([2.0, -100.0])], expected) == pytest.approx(0.01)
    assert relative_difference([torch.tensor([1.0, -100.0, 0.0])], expected) == float("inf")
    assert relative_difference([torch.tensor([float("nan"), -100.0])], expected) == float("inf")
    assert relative_difference(expected, expected) == 0


def test_an_error_is_one_short_line_without_folders() -> None:
    line = one_line(ValueError(f"in {Path.cwd()}/file.py:\n  " + "x" * 500))
    assert line.startswith("ValueError: in file.py: x")
    assert len(line) == 220


def test_what_was_found_before_an_error_is_kept(tmp_path: Path) -> None:
    place = tmp_path / "attempt.json"
    book = Notebook(OurAttempt(), place)
    with book.explaining():
        book.begin("anatomy")
        book.note(free_spaces=3)
        raise RuntimeError("too wide")
    found = OurAttempt.model_validate_json(place.read_text())
    assert (found.stage, found.reason, found.free_spaces) == ("anatomy", "RuntimeError: too wide", 3)


def test_half_of_every_free_space_is_named_and_the_first_unit_stays() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 1), nn.ReLU(), nn.Linear(1, 2))
    assert every_second_unit(anatomy(model, torch.randn(2, 3))) == {"0": [1, 3]}


def test_classes_and_names_choose_networks() -> None:
    assert chosen([]) == list(NETWORKS)
    assert chosen(["perceptron", "own"])[0] == "perceptron"
    assert sorted(chosen(["perceptron", "own"])) == sorted(own.CATALOGUE.entries)
    with pytest.raises(SystemExit, match="no network or class is called vgg99"):
        chosen(["vgg99"])


def two_heads() -> Made:
    return NETWORKS["dictionary_outputs"].factory()


def test_output_layers_are_found_on_the_way_back_and_by_order() -> None:
    model, inputs = two_heads()
    assert first_reached(model, inputs) == ("heads.age", "heads.mood", "heads.sex")
    assert last_run(model, inputs) == ("heads.mood",)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_perceptron_passes_every_question(tmp_path: Path) -> None:
    measure_ours(NETWORKS["perceptron"], tmp_path / "ours.json")
    ours = OurAttempt.model_validate_json((tmp_path / "ours.json").read_text())
    assert (ours.stage, ours.reason, ours.useful) == (DONE, "", True)
    assert (ours.reloaded.passed, ours.onnx.passed) == (True, True)
    measure_rival(NETWORKS["perceptron"], tmp_path / "rival.json")
    rival = RivalAttempt.model_validate_json((tmp_path / "rival.json").read_text())
    assert (rival.stage, rival.reason, rival.useful) == (DONE, "", True)


def broken() -> Made:
    return nn.Linear(3, 2), torch.randn(2, 4)


def test_a_network_that_does_not_run_is_a_row_with_a_reason(tmp_path: Path) -> None:
    measure_ours(Entry(name="broken", group="none", factory=broken), tmp_path / "ours.json")
    ours = OurAttempt.model_validate_json((tmp_path / "ours.json").read_text())
    assert ours.stage == "make"
    assert ours.reason.startswith("RuntimeError: mat1 and mat2 shapes cannot be multiplied")


def test_tables_say_what_the_rows_say() -> None:
    failed = OurAttempt(stage="anatomy", reason="ModelError: a|b")
    passed = attempt(100, 40).model_copy(update={"reloaded": Check(passed=True, note="0.0e+00")})
    rival = RivalAttempt(stage=DONE, parameters_before=100, parameters_after=90, shapes_kept=True)
    rows = tuple(
        Row(name=name, group="few", ours=ours, torch_pruning=rival) for name, ours in (("one", passed), ("two", failed))
    )
    written = write_markdown(Results(packages={"torch": "2"}, limit_seconds=1, rows=rows))
    cells = [[cell.strip() for cell in line.split(" | ")] for line in written.splitlines()]
    summary = next(line for line in cells if line[0] == "| few")
    assert summary[1:4] == ["2", "1", "0"]
    assert summary[7] == "1 of 1"
    assert "**60 %**" in next(line for line in cells if line[0] == "| one")
    assert "anatomy: ModelError: a\\|b" in next(line for line in cells if line[0] == "| two")
