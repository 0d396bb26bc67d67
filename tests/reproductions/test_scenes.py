"""The scenes reproduced: on synthesised ones and on recordings in the forms that are read; resumable, and all shown."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest

from topiarist.data.split import SplitRule
from topiarist.errors import SettingsError
from topiarist.features.log_mel import LogMel
from topiarist.reproductions.scenes import paper
from topiarist.reproductions.scenes.claims import count_claims, count_numbers
from topiarist.reproductions.scenes.data import read_scenes
from topiarist.reproductions.scenes.reproduce import reproduce_scenes
from topiarist.reproductions.scenes.stand_in import scene_waves
from topiarist.reproductions.scenes.study import (
    FASTER,
    FULL,
    INCEPTION,
    QUICK,
    VGG,
    ScenesScope,
    declare_studies,
)
from topiarist.reproductions.scenes.tables import PAPER_MACRO, PAPER_NONZERO, joint_score
from topiarist.statistics import bootstrap_macro_gain
from topiarist.storage import load
from topiarist.study.results import Results

pytestmark = pytest.mark.slow

TINY = ScenesScope(
    recipe=FASTER,
    epochs=2,
    runs=1,
    early=True,
    kinds=("unpruned", "pruned", "pruned, mixed"),
    sound=LogMel(bands=16, window=1024, seconds=0.5),
    clips=24,
    bands=(16,),
    windows=(1024, 2048),
    pieces=(2, 10),
    depths=False,
)
ONE_KIND = TINY.changed(kinds=("pruned",), bands=(), windows=(), pieces=())


def write_clips(folder: Path, *, layout: str, clips: int = 60) -> Path:
    """Write synthesised scenes as recordings: as the challenge lays them out, or one folder per class."""
    soundfile = pytest.importorskip("soundfile")
    made = scene_waves(clips=clips, seconds=0.5, rate=16_000, seed=1)
    rows = []
    for number, (wave, label, finer, city) in enumerate(zip(*made, strict=True)):
        place = folder / ("audio" if layout == "challenge" else label) / f"{finer}-{city}-{number}-0-a.wav"
        place.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(place, wave, 16_000)
        rows.append((f"audio/{place.name}", label, f"{city}-{number}", "a"))
    if layout == "challenge":
        columns = ["filename", "scene_label", "identifier", "source_label"]
        table = pandas.DataFrame(rows, columns=columns)
        table.to_csv(folder / "meta.csv", sep="\t", index=False)
        (folder / "evaluation_setup").mkdir()
        for name, part in (("train", table[: 2 * clips // 3]), ("evaluate", table[2 * clips // 3 :])):
            part[columns[:2]].to_csv(folder / "evaluation_setup" / f"fold1_{name}.csv", sep="\t", index=False)
    return folder


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("scenes")
    return out, reproduce_scenes(out, scope=TINY)


def test_the_page_says_that_scenes_are_synthesised(found: tuple[Path, dict[str, Any]]) -> None:
    out, result = found
    page = (out / "index.html").read_text()
    assert result["stand_in"] and result["failed"] == 0
    assert "synthesised" in result["summary"] and "A stand-in" in page
    for title in ("Table 1", "Table 2", "Table 3", "Accuracy against size", "Friedman"):
        assert title in page


def test_every_model_is_judged_unpruned_and_pruned(found: tuple[Path, dict[str, Any]]) -> None:
    records = pandas.read_csv(found[0] / "tables" / "table3.csv").to_dict("records")
    table: dict[tuple[str, str], Any] = {(row["model"], row["pruned"]): row for row in records}
    assert len(table) == 9
    for model in ("V(2,2,3,3)", "I(2,1,2)", "ensemble"):
        whole, pruned = table[model, "no"], table[model, "yes"]
        assert pruned["non-zero"] < 0.3 * whole["non-zero"]
        assert pruned["KB, 8 bits"] < pruned["KB, 16 bits"] < pruned["KB, 32 bits"] < 0.35 * whole["KB, 32 bits"]
        assert pruned["paper's KB"] == pytest.approx(pruned["non-zero"] * 4 / 1024)
        assert 0 <= pruned["p, macro"] <= 1 and numpy.isnan(whole["p, macro"])
        assert pruned["joint"] == pytest.approx(joint_score(pruned["macro"], pruned["KB, 32 bits"]))
    assert table["ensemble", "yes"][PAPER_MACRO] == paper.TABLE_3[3, True].macro
    rows = pandas.read_csv(found[0] / "tables" / "networks.csv")
    assert rows.groupby("kind")["network"].value_counts().to_dict() == {
        (kind, name): count for kind in TINY.kinds for name, count in (("V", 5), ("I", 1), ("E", 1))
    }


def test_an_ensemble_is_the_mean_of_the_networks_that_the_studies_kept(found: tuple[Path, dict[str, Any]]) -> None:
    out, result = found
    rows = pandas.read_csv(out / "tables" / "networks.csv")
    pruned = rows[rows["kind"] == "pruned"]
    members = pruned[pruned["network"] != "E"]
    gain = pruned.loc[pruned["network"] == "E", "macro"].item() - members["macro"].mean()
    assert result["gain"]["pruned"]["value"] == pytest.approx(gain)
    kept = Results.read(out / "studies" / "vgg")
    networks = [load(kept.model_path(row)) for row in kept.rows if row["label"] == "pruned"]
    zeros = [sum(int((p == 0).sum()) for p in network.parameters() if p.ndim > 1) for network in networks]
    sizes = [sum(p.numel() for p in network.parameters() if p.ndim > 1) for network in networks]
    assert zeros == [round(0.8 * size) for size in sizes]


def test_going_on_changes_nothing(found: tuple[Path, dict[str, Any]]) -> None:
    out, result = found
    before = {path: path.read_bytes() for path in (out / "tables").iterdir()}
    assert reproduce_scenes(out, scope=TINY) == result
    assert {path: path.read_bytes() for path in (out / "tables").iterdir()} == before


@pytest.mark.parametrize("layout", ["challenge", "folders"])
def test_recordings_are_read_and_described_once(tmp_path: Path, layout: str) -> None:
    folder = write_clips(tmp_path / "clips", layout=layout)
    seen: list[int] = []
    scenes = read_scenes(folder, TINY.sounds, cache=tmp_path / "cache", on_clip=lambda done, _: seen.append(done))
    source = scenes.sources["16 bands, window 1024"]
    assert not scenes.stand_in and len(source) == 60 and len(seen) == 60 * len(TINY.sounds)
    assert source.features.shape[1:] == (1, 16, 14)
    if layout == "challenge":
        assert source.parts is not None and source.finer is not None and source.groups is not None
        assert (source.parts == "train").sum() == 40 and len(set(source.finer)) == 10 and len(set(source.groups)) == 6
    else:
        result = reproduce_scenes(tmp_path / "out", location=folder, scope=ONE_KIND)
        assert not result["stand_in"] and "synthesised" not in result["summary"]


def test_folds_keep_cities_together(tmp_path: Path) -> None:
    result = reproduce_scenes(tmp_path, scope=ONE_KIND.changed(folds=2, clips=20))
    rows = pandas.read_csv(tmp_path / "tables" / "networks.csv")
    assert result["failed"] == 0 and rows.groupby("fold").size().to_dict() == {0: 7, 1: 7}


def test_the_full_scope_is_that_of_the_paper() -> None:
    plan = declare_studies(FULL, seed=0)
    assert len(plan.studies["vgg"].seeds) == 50 and len(plan.studies["inception"].seeds) == 10
    pruned = next(cell for cell in plan.studies["vgg"].cells if cell.label == "pruned").settings.training
    assert pruned.pruning is not None
    assert pruned.pruning.prunings(pruned.epochs) == pytest.approx(
        {t: 0.8 + (0.1 - 0.8) * (1 - (t - 100) / 200) ** 3 for t in range(100, 301, 10)}
    )
    assert (pruned.epochs, pruned.batch_size, pruned.learning_rate) == (400, 128, 0.0001)
    assert len(plan.studies["tables"].cells) == 10 * (9 + 8)
    assert len(plan.studies["depths"].cells) == 10 * 6
    assert SplitRule().seed == 0


@pytest.mark.parametrize("epochs", [4, 8, 16, 100, 200, 400])
def test_any_number_of_epochs_can_be_declared(epochs: int) -> None:
    for scope in (QUICK, FULL):
        plan = declare_studies(scope.changed(runs=1, folds=None, epochs=epochs), seed=3)
        found = plan.studies["tables"].configurations
        assert len(found) == len({configuration.label for configuration in found})


def test_without_fine_classes_only_coarse_ones_are_mixed(tmp_path: Path) -> None:
    folder = write_clips(tmp_path / "clips", layout="folders")
    for path in folder.rglob("*.wav"):
        path.rename(path.with_name(f"clip{path.stem.split('-')[2]}.wav"))
    scope = TINY.changed(kinds=("pruned",), bands=(), windows=())
    result = reproduce_scenes(tmp_path / "out", location=folder, scope=scope)
    table = pandas.read_csv(tmp_path / "out" / "tables" / "table2.csv")
    assert result["failed"] == 0 and set(table["class"]) == {"coarse"} and len(table) == 2
    assert "Friedman's test with two factors" not in (tmp_path / "out" / "index.html").read_text()


def test_a_run_without_one_of_its_networks_is_left_out_and_the_page_is_written(tmp_path: Path) -> None:
    scope = ONE_KIND.changed(runs=1, clips=20)
    reproduce_scenes(tmp_path, scope=scope)
    ledger = sqlite3.connect(tmp_path / "studies" / "inception" / "ledger.sqlite")
    with ledger:
        ledger.execute("UPDATE cells SET state = 'failed', result = NULL, reason = 'as a test'")
    ledger.close()
    result = reproduce_scenes(tmp_path, scope=scope)
    assert result["failed"] == 1 and result["failed_in"] == [str(tmp_path / "studies" / "inception")]
    assert "no ensemble to judge" in result["summary"]
    assert "no ensemble to judge" in (tmp_path / "index.html").read_text()


def test_runs_are_no_other_clips() -> None:
    gains, classes = numpy.array([1.0, 0.0, -1.0, 1.0] * 25), numpy.arange(100) % 2
    once = bootstrap_macro_gain(gains, classes)
    assert once.value == pytest.approx(0.25) and once.low < 0.25 < once.high
    again = bootstrap_macro_gain(numpy.mean([gains] * 10, axis=0), classes)
    assert again == once


def test_runs_folds_and_epochs_can_be_changed() -> None:
    scope = QUICK.changed(runs=3, folds=4, epochs=10)
    assert (scope.runs, scope.folds, scope.training.epochs) == (3, 4, 10)
    assert QUICK.changed(runs=None, folds=None, epochs=None) == QUICK
    declared = scope.pruning.model_dump(exclude_unset=True)
    assert declared == {"initial_sparsity": 0.1, "begin": 1, "every": 1, "times": 4}


def test_every_claim_has_a_verdict_on_the_page_and_in_the_result(found: tuple[Path, dict[str, Any]]) -> None:
    out, result = found
    page = (out / "index.html").read_text()
    claims = pandas.read_csv(out / "tables" / "claims.csv")
    assert claims["claim"].tolist() == [row["claim"] for row in result["verdicts"]] and json.dumps(result["verdicts"])
    verdicts = {row["claim"]: row for row in result["verdicts"]}
    assert verdicts["size of V(2,2,3,3)"]["verdict"] == "reproduced"
    assert {row["verdict"] for claim, row in verdicts.items() if "accuracy of" in claim} == {
        "not testable on this data"
    }
    costs = [row for claim, row in verdicts.items() if claim.startswith("pruning costs")]
    assert costs and all("trained for 2 epochs, the paper for 400" in row["note"] for row in costs)
    assert {row["verdict"] for row in costs} == {"not testable on this data"}
    assert page.index("The paper&#39;s claims") < page.index("Table 3: unpruned")
    assert "paper (its own recordings)" in page and "not comparable" in page
    for number in ("450.1", "0.895", "0.401", "115,219", "0.8852±0.0068"):
        assert number in page


def test_mixtures_of_wave_forms_are_made_once_and_again_where_damaged(found: tuple[Path, dict[str, Any]]) -> None:
    out, result = found
    files = sorted((out / "sounds" / "mixtures").iterdir())
    assert len(files) == 4, "2 and 10 pieces, within fine and coarse classes; those of the ensembles among them"
    before = {path: path.stat().st_mtime_ns for path in files}
    content = files[0].read_bytes()
    files[0].write_bytes(content[: len(content) // 2])
    assert reproduce_scenes(out, scope=TINY) == result
    assert files[0].read_bytes() == content, "the same seed gives the same mixtures"
    assert {path for path in files if path.stat().st_mtime_ns != before[path]} == {files[0]}
    figure = (out / "figures" / "mixture.svg").read_text()
    assert figure.count("stroke-dasharray") >= 2 * 9, "nine seams in the waveform and in the spectrogram"


def test_spectrograms_are_mixed_where_asked_and_an_ensemble_has_the_members_asked_for(tmp_path: Path) -> None:
    scope = ONE_KIND.changed(kinds=("pruned, mixed",), vgg_members=2, inception_members=0)
    scope = scope.changed(mixing={"on": "spectrogram", "pieces": 4}, prune={"sparsity": 0.5})
    result = reproduce_scenes(tmp_path, scope=scope)
    assert (
        result["failed"] == 0 and not (tmp_path / "sounds").exists() and not (tmp_path / "figures/mixture.svg").exists()
    )
    rows = pandas.read_csv(tmp_path / "tables" / "networks.csv")
    assert rows["network"].tolist() == ["V", "V", "I", "E"]
    sizes = rows.set_index("network")["non-zero"]
    assert sizes["E"] == sizes["V"].sum()
    kept = Results.read(tmp_path / "studies" / "vgg")
    network = load(kept.model_path(kept.rows[0]))
    kernels = [p for p in network.parameters() if p.ndim > 1]
    assert sum(int((p == 0).sum()) for p in kernels) == round(0.5 * sum(p.numel() for p in kernels))


def test_depths_are_counted_as_the_models(tmp_path: Path) -> None:
    scope = TINY.changed(kinds=("unpruned",), bands=(), windows=(), pieces=(), depths=True, vgg_members=1)
    reproduce_scenes(tmp_path, scope=scope.changed(clips=12, epochs=1, inception_norms=True))
    models = pandas.read_csv(tmp_path / "tables" / "networks.csv").set_index("network")["non-zero"]
    depths = pandas.read_csv(tmp_path / "tables" / "table4.csv").set_index("network")
    assert depths.loc["V(2,2,3,3)", "non-zero"] == models["V"] and depths.loc["I(2,1,2)", "non-zero"] == models["I"]
    assert depths.loc["V(2,2,3,3)", PAPER_NONZERO] == 80_839
    assert depths.loc["V(2,2,3,3)", "paper's KB"] == pytest.approx(models["V"] * 4 / 1024)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"vgg_members": 1, "inception_members": 0}, "two members or more; found 1 V and 0 I"),
        ({"prune": {"times": 50}}, "the last pruning is after epoch 50"),
        ({"prune": {"sparsity": 1.0}}, "less than 1"),
        ({"mixing": {"pieces": 0}}, "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        QUICK.changed(**changes)


def test_a_schedule_of_pruning_follows_the_options() -> None:
    scope = FULL.changed(prune={"initial_sparsity": 0.2, "sparsity": 0.9, "begin": 50, "every": 5, "times": 10})
    expected = {50 + 5 * k: 0.9 + (0.2 - 0.9) * (1 - k / 10) ** 3 for k in range(11)}
    assert scope.prunings == pytest.approx(expected)
    assert max(QUICK.changed(epochs=40, prune={"begin": 10}).prunings) == 20, "the end stays"


def test_the_counts_of_the_paper_come_out_on_its_input() -> None:
    vgg, inception = count_numbers("vgg", VGG), count_numbers("inception", INCEPTION)
    assert (vgg.whole, inception.whole, vgg.pruned, inception.pruned) == (80_839, 167_571, 17_114, 34_185)
    assert 5 * vgg.rounded + inception.rounded == 119_758
    verdicts = {row.claim: row for row in count_claims()}
    assert {row.verdict for row in verdicts.values()} == {"reproduced"}
    assert verdicts["size of V(2,2,3,3)"].note.startswith("equal")
    assert verdicts["size of V(2,2,3,3), pruned"].note.startswith("differs by -1")
    assert verdicts["size of I(3,2,3)"].ours == "267,043 (1,043.1 KB)"


def test_a_wrong_count_is_not_reproduced(monkeypatch: pytest.MonkeyPatch) -> None:
    for nonzero, size in ((81_000, 315.8), (80_839, 316.4)):
        monkeypatch.setitem(paper.TABLE_3, (1, False), paper.PublishedModel(0.9, 0.0, 0.9, 0.0, nonzero, size))
        verdicts = {row.claim: row.verdict for row in count_claims()}
        assert verdicts["size of V(2,2,3,3)"] == "not reproduced"
