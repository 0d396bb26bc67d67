"""What a search reports is what its network does: on the same samples, with the refit that was made."""

import re

import pytest
import torch
from torch import Tensor, nn

from tests.methods.tasks import NOTHING, data_for, data_of, drawn, labelled, perceptron, request_for, with_parts
from topiarist import Budget, Data, TrainConfig, models, train
from topiarist.errors import SettingsError
from topiarist.methods import Distinctiveness, FrontPoint, Genetic, GeneticFront, Rewinding, published, resize
from topiarist.methods.genetic.search import SearchProblem
from topiarist.methods.job import make_job
from topiarist.models.copying import copied
from topiarist.randomness import generator, isolated
from topiarist.study.study import Study

CUT = {"name": "distinctiveness", "keep_fraction": 0.05}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("sizes", "refitted"), [((6, 14, 3), False), ((6, 14, 3), True), ((6, 9, 7, 3), False)])
def test_the_front_delivers_what_it_says(sizes: tuple[int, ...], refitted: bool, seed: int) -> None:
    model = perceptron(*sizes, seed=seed)
    search = GeneticFront(population=20, generations=5, refitted=refitted)
    outcome = resize(model, data_for(model, 6), search, latency=False, settling=0, seed=seed)
    said = re.search(r"([\d.]+) % of [\d,]+ held-out samples$", outcome.reasons[0])
    assert said is not None
    assert float(said[1]) == pytest.approx(100 * outcome.score[1], abs=0.051)


def test_a_last_layer_without_a_bias_is_refitted_without_one() -> None:
    with isolated(3):
        model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3, bias=False))
    x = drawn(300, 6, seed=1)
    parts = (labelled(model, x[:150]), labelled(model, x[150:220]), labelled(model, x[220:]))
    data = data_of(*parts, classes=3)
    outcome = resize(
        model, data, Genetic(fitness="refitted", penalty=1, population=20, generations=8), latency=False, settling=0
    )
    left = sum(after for _, after in outcome.units.values())
    said = re.search(r"fitness (-?[\d.]+) with", outcome.reasons[0])
    assert said is not None and left < 16
    assert float(said[1]) + left == pytest.approx(100 * outcome.score[1], abs=100 / 70 + 0.01)  # a sample's rounding


@pytest.mark.parametrize("method", [GeneticFront(population=10, generations=3), Genetic(population=10, generations=3)])
def test_spaces_of_one_unit_are_no_trap(method: GeneticFront | Genetic) -> None:
    model = perceptron(6, 1, 1, 1, 1, 1, 1, 3)
    outcome = resize(model, data_for(model, 6), method, latency=False)
    assert all(after == 1 for _, after in outcome.units.values())


def test_the_published_search_keeps_all_units_where_it_finds_no_network() -> None:
    model = perceptron(6, 1, 1, 1, 1, 1, 1, 1, 1, 3)
    outcome = resize(model, data_for(model, 6), published.Genetic(population=2, generations=1), latency=False)
    assert outcome.units == dict.fromkeys(outcome.units, (1, 1))


def test_reasons_say_when_nothing_is_held_out() -> None:
    model = perceptron(6, 10, 3)
    whole = request_for(model, data_for(model, 6))
    search = Genetic(population=10, generations=2, penalty=80)
    assert "held-out samples" in search.propose(whole).reasons[0]
    assert "training samples" in search.propose(with_parts(whole, validation=NOTHING)).reasons[0]


@pytest.mark.slow
def test_a_front_is_searched_once_for_all_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    model, calls = perceptron(6, 12, 8, 3), list[int]()
    points = GeneticFront._points

    def counted(self: GeneticFront, problem: SearchProblem, seed: int) -> list[FrontPoint]:
        calls.append(seed)
        return points(self, problem, seed)

    monkeypatch.setattr(GeneticFront, "_points", counted)
    search = GeneticFront(population=20, generations=4)
    outcome = resize(model, data_for(model, 6), search, budget=Budget(max_drop=0.3), latency=False)
    assert len(calls) == 1 and outcome.after.parameters <= outcome.before.parameters


def test_the_early_network_must_be_of_the_epoch_asked_for() -> None:
    data = data_for(perceptron(6, 8, 3), 6)
    model = models.mlp([6, 8, 3], generator=generator(0, "network"))
    early = copied(model)
    config = TrainConfig(epochs=4)
    train(early, data, config.model_copy(update={"until_epoch": 1}))
    train(model, data, config)
    half = Distinctiveness(keep_fraction=0.5)
    resize(model, data, half, retraining=Rewinding(epoch=1, weights=True), early=early, latency=False)
    with pytest.raises(SettingsError, match="that of epoch 1; epoch 2 is asked for"):
        resize(model, data, half, retraining=Rewinding(epoch=2, weights=True), early=early, latency=False)


def test_samples_of_a_stream_are_drawn_from_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topiarist.methods.job.CALIBRATION_SAMPLES", 10)
    pairs = [(torch.full((2,), float(number)), 0) for number in range(50)]
    data = Data.from_datasets(train=pairs, validation=pairs, test=pairs, classes=("a", "b"))  # type: ignore[arg-type]
    model = perceptron(2, 3, 2)
    calibrations = [make_job(model, data, seed=seed).calibration for seed in (0, 0, 1)]
    first, again, other = (x[:, 0].tolist() for x in calibrations if isinstance(x, Tensor))
    assert first == again != other
    assert len(set(first)) == 10 and max(first) > 30
    everything = make_job(model, data, all_samples=True).calibration
    assert isinstance(everything, Tensor) and everything[:, 0].tolist() == list(range(50))


def test_a_study_judges_the_cut_network_on_the_validation_part(tmp_path_factory: pytest.TempPathFactory) -> None:
    study = Study(
        data={"location": "iris", "validation_fraction": 0.3},
        training={"epochs": 40, "learning_rate": 0.02},
        model={"hidden": [12]},
        methods=[{}, {"name": "distinctiveness", "keep_fraction": 0.05, "retraining": {"kind": "fine-tuning"}}, CUT],
    )
    cells = study.run(tmp_path_factory.mktemp("study")).cells
    whole, tuned, cut = cells.to_dict("records")
    assert cut["validation_accuracy"] < whole["validation_accuracy"]
    assert (whole["retraining_epochs"], tuned["retraining_epochs"], cut["retraining_epochs"]) == (0, 5, 0)
