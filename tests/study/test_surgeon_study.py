"""The surgeon as a method of a study: as `resize` by hand, from a file, after an interruption, by several workers."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.study.studies import begun, check_whole, outcome
from tests.study.test_job import by_hand, run, same_figures
from tests.study.test_study_file import read, refusal
from topiarist import Budget, load_data
from topiarist.errors import TopiaristError
from topiarist.methods import Surgeon, published, resize
from topiarist.methods.surgeon.surgeon import SurgeonMethod
from topiarist.storage import serialise
from topiarist.study.ledger import StudyProgress
from topiarist.study.study import Study
from topiarist.study.treatment import Treatment, treatment

METHODS = """
[[methods]]
name = "none"

[[methods]]
name = "surgeon"
aim = "better"
kinds = ["grow", "remove"]
interval = 1

[methods.training]
epochs = 4
schedule = { name = "cosine", warmup = 5 }

[[methods]]
name = "surgeon"
aim = 0.01
patience = 1
search = 0.5
budget = { parameters = 60 }
training = { epochs = 2, batch_size = 8 }
"""
STUDY = f"""
folds = 2
stack = 1
training.epochs = 2
model.hidden = [8]

[data]
location = "iris"
validation_fraction = 0.2
{METHODS}"""  # 6 cells of 2 trainings in 2 stacks


@pytest.mark.slow
def test_a_surgeon_in_a_study_is_resize_by_hand() -> None:
    training = {"epochs": 4, "learning_rate": 0.01}
    methods = [{"name": "none"}, {"name": "surgeon", "aim": "better", "training": training}]
    cells, (whole, resized), (done,) = run(model={"hidden": [8]}, methods=methods)
    data = load_data("iris")
    model, _ = by_hand(data, cells[0], [8])
    same_figures(whole, model, data)
    method = Surgeon(aim="better", training=Surgeon().usual_training.model_copy(update=training))
    expected = resize(model, data, method, seed=cells[1].training_seed, latency=False)
    same_figures(resized, expected.model, data)
    assert resized.model == serialise(expected.model, data=data) and not done.failures
    assert (whole.figures["retraining_epochs"], resized.figures["retraining_epochs"]) == (0, 4)
    kept = json.loads(resized.history)
    assert expected.lineage is not None
    assert kept.pop("lineage") == json.loads(json.dumps(expected.lineage.to_record()))
    assert kept == json.loads(whole.history)


def test_a_file_declares_the_surgeon(tmp_path: Path) -> None:
    study = read(tmp_path, STUDY)
    none, one, other = (configuration.settings.method for configuration in study.configurations)
    assert none == Treatment() and (one.name, other.name) == ("surgeon", "surgeon")
    first, second = one.method, other.method
    assert isinstance(first, Surgeon) and isinstance(second, Surgeon)
    plain = Surgeon().usual_training
    assert (first.aim, first.kinds, first.interval) == ("better", ("grow", "remove"), 1)
    used = first.usual_training
    assert (used.epochs, used.batch_size, used.schedule.warmup) == (4, plain.batch_size, 5)
    assert (second.aim, second.patience, second.search, other.budget) == (0.01, 1, 0.5, Budget(parameters=60))
    assert second.usual_training == plain.model_copy(update={"epochs": 2, "batch_size": 8})
    called = Study(**json.loads(json.dumps(study.to_json())))
    assert [cell.hash for cell in called.cells] == [cell.hash for cell in study.cells]


def surgeon_of(**table: Any) -> SurgeonMethod:
    """Return the surgeon that a table of a study declares."""
    method = treatment(**table).method
    assert isinstance(method, SurgeonMethod)
    return method


def test_what_training_does_not_name_stays_as_it_is() -> None:
    for plain in (Surgeon(), published.Surgeon()):
        shorter = plain.usual_training.model_copy(update={"epochs": 3})
        assert surgeon_of(name=plain.name, training={"epochs": 3}).usual_training == shorter
        assert surgeon_of(name=plain.name).usual_training == plain.usual_training
        assert surgeon_of(name=plain.name, training=shorter).training == shorter


@pytest.mark.slow
@pytest.mark.usefixtures("all_steps")  # as in other processes
def test_it_goes_on_and_workers_change_nothing(tmp_path: Path) -> None:
    study = read(tmp_path, STUDY)
    cells = study.run(tmp_path / "whole").cells
    assert set(cells["state"]) == {"done"} and len(cells) == 6
    expected = outcome(tmp_path / "whole")

    def stop(progress: StudyProgress) -> None:
        if progress.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.run(tmp_path / "out", on_progress=stop)
    kept = begun(tmp_path / "out")
    assert 0 < len(kept) < 6
    Study.in_folder(tmp_path / "out").run(tmp_path / "out")
    check_whole(tmp_path / "out")
    assert outcome(tmp_path / "out") == expected
    assert {key: begun(tmp_path / "out")[key] for key in kept} == kept
    study.run(tmp_path / "two", workers=2)
    assert outcome(tmp_path / "two") == expected


@pytest.mark.slow
def test_the_surgeon_as_published(tmp_path: Path) -> None:
    method = {"name": "published-surgeon", "interval": 1, "training": {"epochs": 2}}
    cells = Study(data="iris", training={"epochs": 1}, model={"hidden": [4]}, methods=[method]).run(tmp_path).cells
    assert cells["state"].tolist() == ["done"] and cells["retraining_epochs"].tolist() == [2]


def test_folds_without_a_validation_part_are_refused_before_anything_is_trained(tmp_path: Path) -> None:
    study = Study(data="iris", folds=2, training={"epochs": 1}, methods=[{"name": "none"}, {"name": "surgeon"}])
    with pytest.raises(TopiaristError, match="configuration 'surgeon': the surgeon chooses by a validation part"):
        study.run(tmp_path / "out")
    assert not (tmp_path / "out").exists()


Case = tuple[str, int, str]
REFUSED: list[Case] = [
    ("kinds = ['shrink']", 4, "methods.0.kinds.0: must be 'renew'"),
    ("aim = 'x'", 4, "methods.0.aim"),
    ("interval = 0", 4, "methods.0.interval: must be greater than or equal to 1; found 0"),
    ("aims = 'better'", 4, "methods.0.aims: there is no such setting"),
    ("training = { epochs = -1 }", 4, "methods.0.training.epochs: must be greater than or equal to 0; found -1"),
    ("training = { seed = 1 }", 4, "methods.0.training: the seed of a training follows from the cell"),
    ("training = 3", 4, "methods.0.training"),
    ("training = { early_stopping = 3 }", 2, "methods.0: early stopping cannot be combined with the surgeon"),
    ("workers = 2", 2, "methods.0: workers belong to the run of a study"),
    ("retraining = { kind = 'fine-tuning' }", 2, "methods.0: the surgeon trains by its own settings"),
    ("budget = { parameters = 0 }", 4, "methods.0.budget.parameters"),
]


@pytest.mark.parametrize(("setting", "line", "said"), REFUSED)
def test_what_is_wrong_is_one_line_with_its_place(tmp_path: Path, setting: str, line: int, said: str) -> None:
    found: Any = refusal(tmp_path, f'data = "iris"\n[[methods]]\nname = "surgeon"\n{setting}\n')
    assert found.startswith(f", line {line}: {said}"), found


def test_a_study_takes_the_settings_of_the_paper() -> None:
    given = {"branches": 3, "memory": "lineage", "top": 2, "absolute_floor": 0.1, "training": {"epochs": 3}}
    made = surgeon_of(name="published-surgeon", **given)
    assert isinstance(made, published.Surgeon)
    assert (made.branches, made.memory, made.top, made.absolute_floor) == (3, "lineage", 2, 0.1)
    assert made.usual_training.epochs == 3 and made.usual_training.optimizer == "sgd"
    with pytest.raises(TopiaristError, match="branches: there is no such setting"):
        surgeon_of(name="surgeon", branches=3)
