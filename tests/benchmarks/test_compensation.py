"""The parts of the compensation benchmark that decide what its tables say."""

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from benchmarks.compensating import methods, texts, training
from benchmarks.compensating.experiments import Setting
from benchmarks.compensating.images import read_idx
from benchmarks.compensating.measuring import measure
from benchmarks.compensating.problem import Problem, uniform, uniform_within
from benchmarks.compensating.records import Outcome, Results, Timing
from benchmarks.compensating.residual import CifarResNet
from benchmarks.compensating.ridge import compensate
from benchmarks.compensating.rival import Importance
from benchmarks.compensating.rival import cut as rival_cut
from benchmarks.compensating.sequences import SmallViT
from benchmarks.compensating.speed import exponent
from benchmarks.compensating.tables import write_markdown
from benchmarks.compensating.training import Recipe, draw_crops, fit, trained
from benchmarks.compensation import chosen, merged
from topiarist import surgery
from topiarist.randomness import generator, isolated
from topiarist.surgery.choice.choosing import WidthCut, cut_to_widths


def perceptron(seed: int = 0) -> Any:
    with isolated(seed):
        return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 7), nn.ReLU(), nn.Linear(7, 3)).eval()


def make_problem(model: nn.Module, x: torch.Tensor, **more: Any) -> Problem:
    with torch.no_grad():
        y = model(x).argmax(1)
    return Problem("tried", 0, model, x, y, x, y, **more)


@pytest.fixture
def problem() -> Problem:
    return make_problem(perceptron(), torch.randn(200, 6, generator=generator(0, "x")))


def test_ridge_makes_up_exactly_for_units_that_others_span(problem: Problem) -> None:
    model: Any = problem.model
    first = model[0]
    with torch.no_grad():  # unit 5 is twice unit 2
        first.weight[5], first.bias[5] = 2 * first.weight[2], 2 * first.bias[2]
        expected = model(problem.calibration)
        compensated = compensate(model, problem.anatomy, {"0": [5]}, problem.calibration)
        found = surgery.remove(compensated, problem.example, units={"0": [5]})(problem.calibration)
    plain = surgery.remove(model, problem.example, units={"0": [5]})(problem.calibration)
    assert (found - expected).abs().max() < 0.02 * (plain - expected).abs().max()


def test_ridge_is_the_solution_of_least_squares(problem: Problem) -> None:
    kept = [0, 1, 3, 4, 6]
    model: Any = problem.model
    compensated: Any = compensate(problem.model, problem.anatomy, {"0": [2, 5, 7]}, problem.calibration)
    with torch.no_grad():
        hidden = model[:2](problem.calibration).double().numpy()
    moments = hidden.T @ hidden
    ridge = 1e-3 * numpy.mean(numpy.diag(moments)[kept])
    rows = numpy.vstack([hidden[:, kept], numpy.sqrt(ridge) * numpy.eye(len(kept))])
    targets = numpy.vstack([hidden, numpy.zeros((len(kept), 8))])
    mixing = numpy.linalg.lstsq(rows, targets, rcond=None)[0].T
    wanted = model[2].weight.detach().double().numpy() @ mixing
    found = compensated[2].weight.detach()
    assert numpy.allclose(found[:, kept].numpy(), wanted, atol=1e-5)
    assert not found[:, [2, 5, 7]].any()


def test_ridge_mixes_channels_of_convolutions() -> None:
    with isolated(1):
        model: Any = nn.Sequential(
            nn.Conv2d(2, 6, 3), nn.ReLU(), nn.Conv2d(6, 4, 3), nn.Flatten(), nn.Linear(64, 3)
        ).eval()
        x = torch.randn(40, 2, 8, 8)
    with torch.no_grad():
        model[0].weight[1], model[0].bias[1] = 3 * model[0].weight[4], 3 * model[0].bias[4]
    found = make_problem(model, x)
    compensated: Any = compensate(model, found.anatomy, {"0": [1]}, found.calibration)
    wanted = model[2].weight[:, 4] + 3 * model[2].weight[:, 1]
    assert torch.allclose(compensated[2].weight[:, 4], wanted, atol=0.02)


def test_ridge_refuses_what_it_is_not_for() -> None:
    found = make_problem(LastState(), torch.randn(4, 5, 3))
    with pytest.raises(ValueError, match=r"'lstm.weight_hh_l0' is neither"):
        compensate(found.model, found.anatomy, {"lstm": [0]}, found.calibration)


class LastState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        given: torch.Tensor = self.head(self.lstm(x)[0][:, -1])
        return given


def test_l1_choice_removes_the_units_with_the_smallest_weights(problem: Problem) -> None:
    model: Any = problem.model
    with torch.no_grad():
        model[0].weight[[1, 6]] *= 0.01
        model[2].weight[3] *= 0.01
    assert methods.weakest(problem, {"0": 6, "2": 6}) == {"0": [1, 6], "2": [3]}


def test_random_choice_is_that_of_the_seed(problem: Problem) -> None:
    units = methods.at_random(problem, {"0": 3})
    assert len(set(units["0"])) == 5
    assert units == methods.at_random(problem, {"0": 3})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("importance", ["L1", "Taylor"])
def test_the_rival_cuts_to_the_widths_that_are_asked_for(problem: Problem, importance: Importance) -> None:
    for width in (1, 3, 5, 7):  # floats must not cost a unit
        smaller: Any = rival_cut(problem, {"0": width, "2": 5}, importance)
        assert (smaller[0].out_features, smaller[2].out_features) == (width, 5)


@pytest.mark.filterwarnings("ignore")
def test_the_rival_cuts_heads_whole() -> None:
    paths = ("attention.query", "attention.key", "attention.value")
    heads = {f"layers.0.{path}": 4 for path in paths}
    found = make_problem(SmallViT(16, 1, 4, 7).eval(), torch.randn(2, 1, 28, 28), heads=heads)
    keep = uniform(found.anatomy, 0.5, lambda name: name.endswith((":heads", "perceptron.hidden")))
    smaller: Any = rival_cut(found, keep, "L1")
    assert smaller.layers[0].attention.project.in_features == 8
    assert smaller.layers[0].perceptron.hidden.out_features == 16
    assert smaller(found.example).shape == (2, 10)


@pytest.mark.slow
def test_ours_settles_only_where_there_is_settling(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    plain = cut_to_widths

    def settling_cut(*args: Any, settling: int = 7, **known: Any) -> WidthCut:
        asked.append(settling)
        return plain(*args, **{name: value for name, value in known.items() if name != "settling"})

    def older_cut(*args: Any, **known: Any) -> WidthCut:
        assert "settling" not in known
        return plain(*args, **known)

    monkeypatch.setattr(methods, "cut_to_widths", settling_cut)
    assert methods.ours(problem, {"0": 4}).settled is not None
    assert asked == [0, 7]
    monkeypatch.setattr(methods, "cut_to_widths", older_cut)
    assert methods.ours(problem, {"0": 4}).settled is None


def test_batch_norms_are_measured_on_the_cut_networks_own_activations() -> None:
    model: Any = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3)).eval()
    found = make_problem(model, torch.randn(300, 6) + 2)
    measured: Any = methods.recalibrated(model, found)
    assert torch.allclose(measured[1].running_mean, model[0](found.calibration).mean(0), atol=1e-5)
    assert not model[1].running_mean.any()


def test_an_error_is_a_row_with_its_reason(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(methods.METHODS, "ours", lambda problem, keep: 1 / 0)
    outcome = measure(problem, Setting("some", {"0": 4}), "ours", 100.0, 0.1)
    assert outcome.reason == "ZeroDivisionError: division by zero"
    assert outcome.refitted is None


@pytest.mark.slow
def test_a_row_is_what_was_measured(problem: Problem) -> None:
    outcome = measure(problem, Setting("some", {"0": 4}), "ours", 100.0, 0.1)
    smaller = cut_to_widths(
        problem.model,
        problem.example,
        keep={"0": 4},
        calibration=problem.calibration,
        **methods.without_settling(cut_to_widths),
    )
    assert outcome.refitted == problem.accuracy(smaller.model)
    assert outcome.parameters == sum(parameter.numel() for parameter in smaller.model.parameters())
    assert outcome.labelled is None


def test_shares_of_inner_channels_use_up_a_budget() -> None:
    found = make_problem(CifarResNet(1, (4, 8, 16)).eval(), torch.randn(2, 3, 8, 8))
    budget = found.costs.parameters({}) * 2 // 3
    widths = uniform_within(found, lambda name: name.endswith("conv1"), parameters=budget)
    assert set(widths) == {"blocks.0.conv1", "blocks.1.conv1", "blocks.2.conv1"}
    assert (
        found.costs.parameters(widths) <= budget < found.costs.parameters({name: w + 1 for name, w in widths.items()})
    )


def test_reviews_count_opinions_that_are_not_turned_round() -> None:
    tokens, answers = texts.write_reviews(50, generator(3, "reviews"))
    for row, answer in zip(tokens.tolist(), answers.tolist(), strict=True):
        words = [word for word in row if word not in (texts.VERY, texts.PAD)]
        good = sum(
            ((word - texts.FIRST_OPINION) % 2 == 0 and before != texts.NOT)
            or ((word - texts.FIRST_OPINION) % 2 == 1 and before == texts.NOT)
            for before, word in pairwise(words)
            if word >= texts.FIRST_OPINION
        )
        assert good == answer
    assert set(answers.tolist()) == {0, 1, 2, 3}


def test_crops_are_windows_of_the_padded_image() -> None:
    x = torch.arange(1.0, 17).view(1, 1, 4, 4).expand(64, 1, 4, 4)
    crops = draw_crops(x, 1, generator(0, "crops"))
    padded = nn.functional.pad(x[:1], (1, 1, 1, 1))
    windows = [padded[0, 0, i : i + 4, j : j + 4] for i in range(3) for j in range(3)]
    windows += [window.flip(1) for window in windows]
    seen = {next(number for number, window in enumerate(windows) if torch.equal(crop[0], window)) for crop in crops}
    assert len(seen) > 9


@pytest.mark.slow
def test_a_killed_training_resumes_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(64, 6, generator=generator(0, "x"))
    y = (x.sum(1) > 0).long()
    recipe = Recipe(epochs=3, rate=0.01, batch=16)
    straight = fit(perceptron(), (x, y), recipe, 0)

    write = training.write_checkpoint

    def write_twice(path: Path, state: dict[str, object]) -> None:
        write(path, state)
        if state["epoch"] == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(training, "write_checkpoint", write_twice)
    with pytest.raises(KeyboardInterrupt):
        fit(perceptron(), (x, y), recipe, 0, tmp_path / "some.checkpoint")
    monkeypatch.undo()
    resumed = fit(perceptron(1), (x, y), recipe, 0, tmp_path / "some.checkpoint")
    for one, other in zip(straight.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.slow
def test_weights_are_kept_per_recipe(tmp_path: Path) -> None:
    x = torch.randn(32, 6, generator=generator(0, "x"))
    train: Any = partial(trained, "small", perceptron, (x, (x[:, 0] > 0).long()), seed=0, cache=tmp_path)
    first = train(recipe=Recipe(epochs=1, rate=0.01))
    assert torch.equal(train(recipe=Recipe(epochs=1, rate=0.01))[0].weight, first[0].weight)
    assert not torch.equal(train(recipe=Recipe(epochs=2, rate=0.01))[0].weight, first[0].weight)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".pt", ".pt"]


def test_idx_files_keep_shape_and_values(tmp_path: Path) -> None:
    path = tmp_path / "some-idx3-ubyte"
    values = numpy.arange(12, dtype=numpy.uint8)
    path.write_bytes(bytes([0, 0, 8, 3]) + numpy.array([2, 3, 2], ">i4").tobytes() + values.tobytes())
    assert torch.equal(read_idx(path), torch.arange(12, dtype=torch.uint8).view(2, 3, 2))


def test_exponents_are_slopes_of_logarithms() -> None:
    assert exponent([1, 2, 4], [3, 6, 12]) == pytest.approx(1)
    assert exponent([1, 2, 4], [1, 4, 16]) == pytest.approx(2)


def outcome_of(seed: int, **found: Any) -> Outcome:
    return Outcome(experiment="lenet5", setting="half", method="ours", seed=seed, **found)


def test_tables_say_what_the_rows_say() -> None:
    outcomes = (
        outcome_of(0, dense=90.0, cut=50.0, refitted=86.0, settled=88.0, cut_seconds=0.5, parameters=1000),
        outcome_of(1, dense=92.0, cut=52.0, refitted=88.0, settled=91.0, cut_seconds=1.5, parameters=1000),
    )
    failed = Outcome(experiment="lenet5", setting="half", method="rival", seed=0, dense=90.0, reason="a|b")
    timings = tuple(
        Timing(network=f"{count} images", parameters=5, layers=2, images=count, forward_seconds=1, refit_seconds=count)
        for count in (2, 4)
    )
    results = Results(packages={"torch": "2"}, processor="some", outcomes=(*outcomes, failed), timings=timings)
    lines = [[cell.strip() for cell in line.split(" | ")] for line in write_markdown(results).splitlines()]
    head, ours = (next(line for line in lines if word in line) for word in ("method", "ours"))
    told = dict(zip(head, ours, strict=True))
    assert [told[name] for name in ("seeds", "as cut", "refit")] == ["2", "51.00 (1.41)", "87.00 (1.41)"]
    assert [told[name] for name in ("settled", "lost", "s cut")] == ["89.50 (2.12)", "1.50 (0.71)", "1.00"]
    assert "labels" not in told  # nobody was trained with them
    assert "a\\|b" in next(line for line in lines if "rival" in line)[-1]
    assert ["Exponent of the refit's time in samples: 1.00."] in lines
    assert ["Dense: 91.00 (1.41)."] in lines


def test_files_of_several_runs_are_joined_and_later_ones_count() -> None:
    first = Results(
        packages={"torch": "2"}, processor="some", outcomes=(outcome_of(0, dense=1.0), outcome_of(1, dense=1.0))
    )
    later = Results(packages={"torch": "2"}, processor="some", outcomes=(outcome_of(1, dense=2.0),))
    assert [outcome.dense for outcome in merged([first, later]).outcomes] == [1.0, 2.0]
    with pytest.raises(SystemExit, match="different versions"):
        merged([first, Results(packages={"torch": "3"}, processor="some")])


def test_experiments_are_chosen_by_name() -> None:
    assert chosen(["speed", "vit", "vit"]) == ["speed", "vit"]
    with pytest.raises(SystemExit, match="no experiment is called lenet6"):
        chosen(["lenet6"])


@pytest.mark.slow
@pytest.mark.parametrize("taught", [False, True])
def test_training_with_labels_changes_a_copy(taught: bool) -> None:
    x = torch.randn(96, 6, generator=generator(0, "x"))
    cut, before = perceptron(1), perceptron(1)
    samples = (x, (x[:, 0] > 0).long())
    tuned = training.tuned(
        cut, taught, teacher=perceptron(), samples=samples, recipe=Recipe(epochs=8, rate=0.01), seed=0
    )
    assert torch.equal(cut[0].weight, before[0].weight)
    right = [float((model(x).argmax(1) == samples[1]).double().mean()) for model in (before, tuned)]
    assert right[1] > right[0]
