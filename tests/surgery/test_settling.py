"""Settling: the answers of the whole network are approached, never left, and a plan remembers how."""

import warnings
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from tests.networks import ResidualNetwork, TwoInputsTwoOutputs, built
from topiarist.errors import ModelError, SettingsError, TopiaristWarning
from topiarist.models import Ensemble
from topiarist.randomness import generator
from topiarist.surgery import Plan, RemoveUnits, SettleNetwork, apply, fold, plan_of, remove
from topiarist.surgery.calibration import batches_for
from topiarist.surgery.choice.choosing import cut_to_widths
from topiarist.surgery.settling.divergence import divergence_for
from topiarist.surgery.settling.inner import INNER, InnerAnswers
from topiarist.surgery.settling.mixtures import MOST_MIXTURES
from topiarist.surgery.settling.pool import AnsweredBatch, answers_of
from topiarist.surgery.settling.samples import answered
from topiarist.surgery.settling.settling import Settled, settle
from topiarist.surgery.settling.work import suited_steps

STEPS = 40


def perceptron(hidden: int, *, seed: int, dtype: torch.dtype = torch.float64) -> nn.Sequential:
    model = nn.Sequential(nn.Linear(6, hidden), nn.ReLU(), nn.Linear(hidden, 3))
    random = generator(seed, "weights")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=random))
    return model.to(dtype)


def samples(count: int, *shape: int, seed: int = 0) -> Tensor:
    return torch.randn(count, *(shape or (6,)), generator=generator(seed, "inputs"), dtype=torch.float64)


def settled(whole: nn.Module, cut: nn.Module, x: Any, example: Any = None, **settings: Any) -> Settled:
    return settle(whole, cut, batches_for(x, whole, example), **{"steps": STEPS, **settings})


def distance(whole: nn.Module, cut: nn.Module, inputs: Any) -> float:
    """The divergence on a batch, measured from outside."""
    wanted = answers_of(whole, inputs)
    return float(divergence_for([wanted])(answers_of(cut, inputs), wanted))


def values_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def assert_same(left: nn.Module, right: nn.Module) -> None:
    assert values_of(left).keys() == values_of(right).keys()
    for name, value in values_of(left).items():
        assert torch.equal(value, values_of(right)[name]), name


@pytest.mark.parametrize("count", [20, 300])
@pytest.mark.parametrize("seed", range(3))
def test_the_part_that_judges_never_ends_worse_and_is_what_the_result_tells_of(count: int, seed: int) -> None:
    whole, cut, x = perceptron(12, seed=seed), perceptron(5, seed=seed + 10), samples(count, seed=seed)
    drawn = answered(whole, batches_for(x, whole, None), seed)
    assert drawn is not None and drawn.count == count * (1 + MOST_MIXTURES)
    assert drawn.count // 5 <= len(drawn.judging) == len(set(drawn.judging.tolist())) <= drawn.count
    judged, measured = drawn.batch(drawn.judging).inputs, divergence_for(drawn.wanted)

    def on_judging() -> float:
        return float(measured(answers_of(cut, judged), answers_of(whole, judged)))

    before = on_judging()
    found = settled(whole, cut, x, seed=seed)
    assert found.before == pytest.approx(before) and found.after == pytest.approx(on_judging())
    assert found.after < found.before and found.numbers and found.steps == STEPS


def test_mixtures_lie_between_samples_and_have_the_answers_of_the_whole_network() -> None:
    whole, x = perceptron(12, seed=0), samples(50)
    drawn = answered(whole, batches_for(x, whole, None), 0)
    assert drawn is not None
    batch = drawn.batch(torch.arange(drawn.count))
    mixed = batch.inputs[0][0]
    assert torch.equal(mixed[:50], x) and len(mixed) == 50 * (1 + MOST_MIXTURES)
    assert torch.allclose(batch.answers[0], whole(mixed))
    assert (mixed[50:] >= x.amin(dim=0)).all() and (mixed[50:] <= x.amax(dim=0)).all()
    for mixture in mixed[50:90]:  # each on the line between two of the samples
        to_samples = torch.cdist(mixture[None], x)[0]
        sums = to_samples[:, None] + to_samples[None, :] - torch.cdist(x, x)
        assert sums.fill_diagonal_(1.0).min() < 1e-6


@pytest.mark.parametrize(
    "whole",
    [
        nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)),  # mixtures would have other statistics
        nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(24, 3)),  # words are no numbers
        nn.Sequential(nn.Linear(6, 30_000), nn.ReLU(), nn.Linear(30_000, 900)),  # slow to answer
    ],
    ids=["batch norm", "words", "large"],
)
def test_where_mixtures_say_nothing_or_cost_much_there_are_none(whole: nn.Module) -> None:
    words = isinstance(next(whole.children()), nn.Embedding)
    x = torch.randint(9, (900, 6), generator=generator(0, "words")) if words else samples(900).float()
    drawn = answered(whole, batches_for(x, whole, None), 0)
    assert drawn is not None and drawn.count == 900


def test_samples_that_no_one_has_seen_gain_too() -> None:
    whole, cut = perceptron(12, seed=0), perceptron(8, seed=0)
    unseen: Any = ((samples(500, seed=9),), {})
    before = distance(whole, cut, unseen)
    settled(whole, cut, samples(500), steps=200)
    assert distance(whole, cut, unseen) < before / 2


@pytest.mark.parametrize("kind", ["the same network", "too few samples", "all frozen", "no steps"])
def test_where_nothing_can_be_better_nothing_changes(kind: str) -> None:
    whole = perceptron(12, seed=0)
    cut = deepcopy(whole) if kind == "the same network" else perceptron(5, seed=1)
    cut.requires_grad_(kind != "all frozen")
    before = values_of(cut)
    found = settled(
        whole, cut, samples(4 if kind == "too few samples" else 60), steps=0 if kind == "no steps" else STEPS
    )
    assert not found.numbers
    assert all(torch.equal(value, before[name]) for name, value in cut.state_dict().items())


def test_values_that_only_get_worse_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topiarist.surgery.settling.steps.FIRST_RATE", 1e6)
    whole, cut = perceptron(12, seed=0), perceptron(5, seed=1)
    before = values_of(cut)
    found = settled(whole, cut, samples(60))
    assert not found.numbers and found.after == found.before
    assert all(torch.equal(value, before[name]) for name, value in cut.state_dict().items())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_same_seed_gives_the_same_bits_and_another_does_not(dtype: torch.dtype) -> None:
    whole, x = perceptron(12, seed=0, dtype=dtype), samples(100)
    one, two, three = networks = [perceptron(5, seed=1, dtype=dtype) for _ in range(3)]
    state = torch.get_rng_state()
    settled(whole, one, x)
    torch.rand(3, generator=torch.Generator())
    settled(whole, two, x)
    settled(whole, three, x, seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    assert_same(one, two)
    assert not torch.equal(values_of(one)["0.weight"], values_of(three)["0.weight"])
    assert all(own.dtype is dtype for network in networks for own in network.parameters())


def test_modes_buffers_and_the_whole_network_stay_even_where_tensors_are_shared() -> None:
    whole, x = built(ResidualNetwork, (40, 3, 5, 5), seed=0)
    cut = deepcopy(whole)
    for name, module in cut.named_modules():
        for key, own in module._parameters.items():
            if own is not None:
                module._parameters[key] = nn.Parameter(whole.get_submodule(name)._parameters[key].detach())  # type: ignore[union-attr]
    with torch.no_grad():
        first = next(iter(cut.parameters()))
        first.data = first + 0.3 * torch.randn(first.shape, generator=generator(0, "noise"))
    before = values_of(whole)
    norms = [module for module in cut.modules() if isinstance(module, nn.BatchNorm2d)]
    cut.train()
    norms[0].eval()
    modes = [module.training for module in cut.modules()]
    tracked = norms[0].num_batches_tracked
    assert tracked is not None
    count = int(tracked)
    assert settled(whole, cut, x).numbers
    assert [module.training for module in cut.modules()] == modes and int(tracked) == count
    assert all(torch.equal(value, before[name]) for name, value in whole.state_dict().items())
    assert all(own.grad is None for own in cut.parameters())


def test_frozen_layers_stay_with_their_statistics_and_dropout_is_off() -> None:
    layers = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.9), nn.Linear(8, 3)
    cut = nn.Sequential(*layers).double()
    cut[1].requires_grad_(False)
    before, whole = values_of(cut), perceptron(12, seed=0)
    found = settled(whole, cut, samples(200))
    assert found.numbers.keys() == {"0.weight", "0.bias", "4.weight", "4.bias"}
    assert all(torch.equal(cut.state_dict()[name], before[name]) for name in before if name.startswith("1."))
    assert [own.requires_grad for own in cut[1].parameters()] == [False, False]


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.read = nn.Linear(5, hidden, bias=False)
        self.write = nn.Linear(hidden, hidden)
        self.again = nn.Linear(hidden, hidden)
        self.again.weight = self.write.weight
        self.head = nn.Linear(hidden, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.write(torch.tanh(self.read(x))))
        answers: Tensor = self.head(torch.tanh(self.again(x)))
        return answers


def test_tied_parameters_stay_tied_also_when_a_plan_is_replayed() -> None:
    model, x = built(lambda: Tied(7), (80, 5), seed=0)
    cut: Any = remove(model, x[:2], units={"read": [1, 4]}, calibration=x, settling=STEPS)
    again: Any = apply(plan_of(cut), model, x[:2])
    assert_same(cut, again)
    assert cut.again.weight is cut.write.weight and again.again.weight is again.write.weight
    assert any(isinstance(edit, SettleNetwork) for edit in plan_of(cut))


def normed(hidden: int) -> nn.Module:
    return nn.Sequential(parametrizations.weight_norm(nn.Linear(6, hidden)), nn.Tanh(), nn.Linear(hidden, 3)).double()


class Recurrent(nn.Module):
    """An LSTM over short sequences."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.cells = nn.LSTM(4, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 3)

    def forward(self, x: Tensor) -> Tensor:
        answers: Tensor = self.head(self.cells(x)[0])  # a number for each step and class
        return answers


@pytest.mark.parametrize(
    ("make", "shape"),
    [(normed, (6,)), (lambda hidden: Recurrent(hidden).double(), (5, 4))],
    ids=["weight norm", "recurrent"],
)
def test_parametrized_and_recurrent_layers_settle(make: Callable[[int], nn.Module], shape: tuple[int, ...]) -> None:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        whole, cut = make(9), make(5)
    x = samples(100, *shape)
    before = distance(whole, cut, ((x,), {}))
    found = settled(whole, cut, x)
    assert found.after < found.before and distance(whole, cut, ((x,), {})) < before
    names = {name for name, _ in cut.named_parameters()}
    assert found.numbers.keys() <= names and len(found.numbers) > len(names) / 2


def test_several_outputs_and_inputs_by_name_settle_together() -> None:
    whole, (image, row) = built(TwoInputsTwoOutputs, (60, 3, 8, 8), (60, 7), seed=0)
    by_name = {"row": row, "image": image}
    units = {"look": [0, 2], "shared": [1, 4]}
    example = {name: value[:2] for name, value in by_name.items()}
    plain = remove(whole, example, units=units, calibration=by_name, settling=0)
    cut = remove(whole, example, units=units, calibration=by_name, settling=STEPS)
    assert distance(whole, cut, ((), by_name)) < distance(whole, plain, ((), by_name))
    assert_same(cut, apply(plan_of(cut), whole, example))


def test_batches_that_differ_in_shape_stay_as_they_came() -> None:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        whole, cut = Recurrent(9).double(), Recurrent(5).double()
    batches = [samples(8, 3 + number % 3, 4, seed=number) for number in range(12)]
    found = settled(whole, cut, batches)
    assert found.after < found.before and found.numbers


class SequenceFirst(Recurrent):
    """The same with time along the first axis: samples cannot be drawn along it."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.transpose(0, 1)).transpose(0, 1)


def test_fresh_mixtures_differ_from_pass_to_pass_and_samples_stay_as_they_are() -> None:
    whole, x = perceptron(9, seed=0), samples(50)
    drawn = answered(whole, batches_for(x, whole, None), 0)
    assert drawn is not None
    assert drawn.fresh is not None
    numbers = torch.tensor([3, 50 + 3, 100 + 3])  # a sample, and two mixtures of it
    random = generator(0, "any")
    (first,), (second,) = (drawn.fresh(numbers, random).inputs[0] for _ in range(2))
    assert torch.equal(first[0], x[3])
    assert torch.equal(second[0], x[3])
    assert not torch.equal(first[1], second[1])
    for mixture in (*first[1:], *second[1:]):  # between sample 3 and another one
        way = torch.cdist(mixture[None], x)[0] + (mixture - x[3]).norm() - torch.cdist(x[3:4], x)[0]
        assert way.min() < 1e-6
    again = next(drawn.drawn(5, unanswered=True)), next(drawn.drawn(5, unanswered=True))
    assert torch.equal(*(batch.inputs[0][0] for batch in again))


def test_samples_along_another_axis_are_not_mixed() -> None:
    whole = SequenceFirst(9).double()
    batches = [samples(7, 7, 4, seed=number) for number in range(5)]
    drawn = answered(whole, batches_for(batches, whole, None), 0)
    assert drawn is not None
    batch = next(drawn.drawn(0))
    assert any(torch.equal(batch.inputs[0][0], each) for each in batches)


def test_a_network_with_batch_norms_keeps_what_it_knows() -> None:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(2, 12, 3), nn.BatchNorm2d(12), nn.ReLU(), nn.Conv2d(12, 10, 3), nn.BatchNorm2d(10), nn.ReLU(),
            nn.Flatten(), nn.Linear(90, 4),
        )  # fmt: skip
        x = samples(300, 2, 7, 7).float() * 2 + 1
        model.train()
        for start in range(0, 300, 50):
            model(x[start : start + 50])
    model.eval()
    units = {"0": range(6), "3": range(5)}
    unseen: Any = ((samples(200, 2, 7, 7, seed=5).float() * 2 + 1,), {})
    plain: Any = remove(model, x[:2], units=units, calibration=x, settling=0)
    cut: Any = remove(model, x[:2], units=units, calibration=x, settling=STEPS)
    assert distance(model, cut, unseen) < distance(model, plain, unseen)
    assert cut[1].running_mean.shape == (6,) and int(cut[1].num_batches_tracked) == int(plain[1].num_batches_tracked)
    assert_same(cut, apply(plan_of(cut), model, x[:2]))


def test_a_plan_replays_a_settled_cut_exactly_and_redoes_it_from_json() -> None:
    model, x = perceptron(12, seed=0), samples(120)
    cut = remove(model, x[:2], units={"0": [1, 3, 5, 7]}, calibration=x, settling=STEPS)
    assert str(plan_of(cut)) == f"1. remove 4 of '0' and refit\n2. settle in {STEPS} steps"
    assert_same(apply(plan_of(cut), model, x[:2]), cut)
    read = Plan.from_json(plan_of(cut).to_json())
    assert read == plan_of(cut)
    assert_same(apply(read, model, x[:2], calibration=x), cut)
    plain = remove(model, x[:2], units={"0": [1, 3, 5, 7]}, calibration=x, settling=0)
    assert_same(apply(read, model, x[:2], calibration=x, settling=0), plain)
    with torch.no_grad():  # what becomes of the network later is no business of its plan
        next(cut.parameters()).zero_()
    assert_same(apply(plan_of(cut), model, x[:2]), apply(read, model, x[:2], calibration=x))


def test_two_cuts_one_after_the_other_are_redone_from_json() -> None:
    model, x = perceptron(12, seed=0), samples(120)
    first = remove(model, x[:2], units={"0": [1, 3]}, calibration=x, settling=STEPS)
    second = remove(first, x[:2], units={"0": [0, 2, 4]}, calibration=x, settling=STEPS)
    assert len(plan_of(second)) == 4
    assert_same(apply(plan_of(second), model, x[:2]), second)
    assert_same(apply(Plan.from_json(plan_of(second).to_json()), model, x[:2], calibration=x), second)


def test_a_plan_of_several_edits_is_settled_once_at_its_end() -> None:
    model, x = perceptron(12, seed=0), samples(120)
    edits = RemoveUnits(units={"0": (1, 2)}, refit=True), RemoveUnits(units={"0": (0, 4, 5)}, refit=True)
    cut = apply(Plan(edits), model, x[:2], calibration=x, settling=STEPS)
    assert plan_of(cut).edits == (*edits, SettleNetwork(steps=STEPS, edits=2))
    assert_same(apply(Plan.from_json(plan_of(cut).to_json()), model, x[:2], calibration=x), cut)
    unfitted = apply(Plan((RemoveUnits(units={"0": (1,)}),)), model, x[:2], calibration=x)
    assert len(plan_of(unfitted)) == 1


@pytest.mark.parametrize("verb", ["remove", "fold", "cut to widths"])
def test_every_cut_with_a_refit_is_settled_unless_told_not_to(verb: str) -> None:
    model = nn.Sequential(perceptron(12, seed=0), nn.ReLU(), nn.Linear(3, 3).double())
    x = samples(80)

    def made(**settling: Any) -> nn.Module:
        if verb == "remove":
            return remove(model, x[:2], units={"0.0": [0, 1, 2]}, calibration=x, **settling)
        if verb == "fold":
            return fold(model, x[:2], layer="0.0", linearise=True, calibration=x, **settling)
        return cut_to_widths(model, x[:2], keep=0.5, calibration=x, **settling).model

    cut, plain = made(), made(settling=0)
    last = plan_of(cut).edits[-1]
    assert isinstance(last, SettleNetwork) and len(plan_of(plain)) == len(plan_of(cut)) - 1
    assert_same(apply(plan_of(cut), model, x[:2]), cut)
    some = made(settling=7)
    assert plan_of(some).edits[-1] == SettleNetwork(steps=7) or len(plan_of(some)) == 1
    assert distance(model, cut, ((x,), {})) < distance(model, plain, ((x,), {}))


def test_a_plan_from_json_without_data_says_what_is_missing() -> None:
    model, x = perceptron(12, seed=0), samples(60)
    cut = remove(model, x[:2], units={"0": [1]}, calibration=x, settling=STEPS)
    only = Plan((plan_of(cut).edits[-1],))
    with pytest.raises(ModelError, match="no numbers for its settling"):
        apply(only, cut, x[:2])
    with pytest.raises(SettingsError, match="settling is a number of steps"):
        remove(model, x[:2], units={"0": [1]}, calibration=x, settling=-1)


def test_inference_mode_makes_no_difference() -> None:
    model, x = perceptron(12, seed=0), samples(60)
    cut = remove(model, x[:2], units={"0": [1, 2, 3]}, calibration=x, settling=STEPS)
    with torch.inference_mode():
        again = remove(model, x[:2], units={"0": [1, 2, 3]}, calibration=x.clone(), settling=STEPS)
    assert_same(cut, again)
    assert all(own.requires_grad and not own.is_inference() for own in again.parameters())


class WithoutGradient(nn.Sequential):
    """A network that is only ever used, not trained."""

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = super().forward(x)  # type: ignore[no-untyped-call]
        return given


def test_a_network_without_gradients_is_left_with_one_clear_warning() -> None:
    whole, cut = perceptron(12, seed=0), WithoutGradient(*perceptron(5, seed=1))
    before = values_of(cut)
    with pytest.warns(TopiaristWarning, match="not settled: its answers have no gradient"):
        found = settled(whole, cut, samples(60))
    assert not found.numbers and all(torch.equal(value, before[name]) for name, value in cut.state_dict().items())


def test_members_of_an_ensemble_keep_their_own_part_of_the_plan() -> None:
    x = samples(60)
    models = [perceptron(12, seed=number) for number in range(2)]
    cuts = [remove(model, x[:2], units={"0": [1, 2]}, calibration=x, settling=STEPS) for model in models]
    both = Ensemble(cuts)
    assert [edit.kind for edit in plan_of(both)] == ["remove", "settle", "remove", "settle"]
    assert_same(apply(plan_of(both), Ensemble(models), x[:2]), both)


@pytest.mark.parametrize("shape", [(40, 4), (40, 1), (40,), (40, 5, 7), (40, 1, 3, 3)])
def test_a_divergence_is_zero_for_the_same_answers_and_grows_with_their_distance(shape: tuple[int, ...]) -> None:
    wanted = torch.randn(shape, generator=generator(0, "answers"), dtype=torch.float64)
    measured = divergence_for([[wanted]])
    noise = torch.randn(shape, generator=generator(1, "answers"), dtype=torch.float64)
    found = [float(measured([wanted + size * noise], [wanted])) for size in (0.0, 0.1, 0.5)]
    assert found[0] == pytest.approx(0.0, abs=1e-12) and found[0] < found[1] < found[2]
    scaled = divergence_for([[1000 * wanted]]) if shape != (40, 4) else measured
    if shape != (40, 4):
        assert float(scaled([1000 * (wanted + 0.1 * noise)], [1000 * wanted])) == pytest.approx(found[1])


def test_probabilities_and_impossible_answers_are_compared_too() -> None:
    scores = torch.randn(30, 4, generator=generator(0, "answers"), dtype=torch.float64)
    other = scores + 0.3 * torch.randn(30, 4, generator=generator(1, "answers"), dtype=torch.float64)
    wanted, found = scores.softmax(1), other.softmax(1)
    by_hand = float((wanted * (wanted / found).log()).sum(1).mean())
    assert float(divergence_for([[wanted]])([found], [wanted])) == pytest.approx(by_hand)
    masked, near = scores.clone(), other.clone().requires_grad_()
    masked[:, 1] = -torch.inf
    loss = divergence_for([[masked]])([near.masked_fill(torch.arange(4) == 1, -torch.inf)], [masked])
    (gradient,) = torch.autograd.grad(loss, near)
    assert bool(loss > 0) and bool(gradient.isfinite().all())


def test_a_divergence_of_ones_own_is_what_is_made_smaller() -> None:
    whole, cut, x = perceptron(12, seed=0), perceptron(5, seed=1), samples(200)
    with torch.no_grad():
        first = (whole(x) - cut(x)).abs()
    settled(whole, cut, x, divergence=lambda _: lambda found, wanted: (found[0][:, 0] - wanted[0][:, 0]).abs().mean())
    with torch.no_grad():
        after = (whole(x) - cut(x)).abs()
    assert float(after[:, 0].mean()) < float(first[:, 0].mean())
    assert float((after[:, 0] / first[:, 0].mean()).mean()) < float((after[:, 1:] / first[:, 1:].mean()).mean())


@pytest.mark.slow
@pytest.mark.usefixtures("all_steps")
def test_the_default_number_of_steps_falls_with_the_size_of_the_work() -> None:
    small, x = perceptron(12, seed=0), samples(400)
    drawn = answered(small, batches_for(x, small, None), 0)
    assert drawn is not None
    large = nn.Sequential(nn.Linear(6, 3000), nn.ReLU(), nn.Linear(3000, 1500), nn.ReLU(), nn.Linear(1500, 3)).double()
    assert suited_steps(large, drawn) < suited_steps(small, drawn)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert settle(small, perceptron(5, seed=1), batches_for(x, small, None)).steps == suited_steps(small, drawn)


@pytest.mark.usefixtures("all_steps")
def test_few_parameters_take_more_steps_over_the_same_samples() -> None:
    whole, few, x = perceptron(12, seed=0), nn.Linear(6, 2).double(), samples(200)
    drawn = answered(whole, batches_for(x, whole, None), 0)
    assert drawn is not None
    assert drawn.originals == 200 < drawn.count  # mixtures are no samples
    assert suited_steps(few, drawn) == pytest.approx(1.5 * suited_steps(whole, drawn), abs=1)


def test_batches_are_smaller_where_weights_meet_many_places_of_images_and_parameters_are_few() -> None:
    images = samples(8400, 3, 2, 2)
    perceptron_of = nn.Sequential(nn.Flatten(), nn.Linear(12, 30), nn.ReLU(), nn.Linear(30, 3)).double()
    convolution = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Flatten(), nn.Linear(16, 3)).double()
    sizes = []
    for whole, count in ((perceptron_of, None), (convolution, None), (convolution, 840), (convolution, 839)):
        drawn = answered(whole, batches_for(images, whole, None), 0, parameters=count)
        assert drawn is not None
        sizes.append((drawn.batch_size, drawn.count))
    assert sizes == [(512, 4 * 8400), (128, 8400), (128, 8400), (64, 8400)]  # the perceptron has three mixtures of each


def test_layers_inside_that_still_have_their_units_are_compared_too() -> None:
    class Branches(nn.Module):
        def __init__(self, hidden: int, seed: int) -> None:
            super().__init__()
            self.same, self.branch, self.last = perceptron(4, seed=2), perceptron(hidden, seed=seed), nn.Linear(3, 2)
            self.last = self.last.double().requires_grad_(False)

        def forward(self, x: Tensor) -> Tensor:
            answer: Tensor = self.last(self.same(x) + self.branch(x))
            return answer

    whole, cut, x = Branches(12, 0), Branches(5, 1), samples(200)
    inner = InnerAnswers.between(whole, cut, ((x,), {}))
    assert inner.paths == ("branch.2",)  # what did not change, the hidden layer and the answers are left out
    _, answers, missed = inner.run(AnsweredBatch(((x,), {}), (), len(x)))
    torch.testing.assert_close(answers[0], whole(x).detach())
    with torch.no_grad():
        wanted, found = whole.branch(x), cut.branch(x)
    share = (found - wanted).square().mean() / (wanted - wanted.mean(0)).square().mean()
    assert missed is not None
    torch.testing.assert_close(missed.detach(), INNER * share)


def test_networks_that_draw_random_numbers_are_compared_by_their_answers_alone() -> None:
    class Noisy(nn.Module):
        def __init__(self, seed: int) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(6, 6).double(), perceptron(5, seed=seed)

        def forward(self, x: Tensor) -> Tensor:
            answer: Tensor = self.last(self.first(nn.functional.dropout(x, 0.5, training=True)))
            return answer

    whole, cut, x = Noisy(0), Noisy(1), samples(64)
    assert InnerAnswers.between(whole, cut, ((x,), {})).paths == ()
