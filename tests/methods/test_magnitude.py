"""Pruning while training, through `resize`: to a sparsity, to a file size, as far as a loss allows; ensembles too."""

import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.methods.tasks import answers, percentage, same_state, state_of, widths_of
from topiarist import load, load_data, measure, save
from topiarist.data import AnyPart, Data, Part
from topiarist.errors import SettingsError, TopiaristWarning
from topiarist.measurement import Budget, BudgetError
from topiarist.methods import FineTuning, Magnitude, Outcome, Rewinding, published, resize
from topiarist.methods.magnitude.magnitude import PruningMethod
from topiarist.methods.published import magnitude as paper
from topiarist.models import Ensemble, attach, card_of, mlp, vgg
from topiarist.randomness import generator
from topiarist.storage import serialise
from topiarist.training import Pruning, TrainConfig, train

SHORT = FineTuning(epochs=4)
ORIGINAL = TrainConfig(epochs=6, batch_size=16, learning_rate=0.02, schedule="cosine")


def some(*shape: int) -> Data:
    """Return some of the digits, in this shape."""
    data = load_data("digits")

    def part(whole: AnyPart) -> Part:
        assert isinstance(whole, Part)
        return Part(whole.x[:240].view(-1, *shape), whole.y[:240])

    train, validation, test = part(data.train), part(data.validation), part(data.test)
    return replace(data, input_shape=shape, train=train, validation=validation, test=test)


@cache
def digits() -> Data:
    return some(64)


@cache
def pictures() -> Data:
    return some(1, 8, 8)


@cache
def trained(*hidden: int, seed: int = 0, epochs: int = 6) -> nn.Module:
    model = mlp([64, *hidden, 10], generator=generator(seed, "weights"))
    train(model, digits(), ORIGINAL.model_copy(update={"seed": seed, "epochs": epochs}))
    return model


def perceptron() -> nn.Module:
    return deepcopy(trained(24, 16))


@cache
def trained_vgg() -> nn.Module:
    model = vgg(1, 1, 0, 1, input_shape=(1, 8, 8), classes=10, dropout=0.1, generator=generator(0, "weights"))
    train(model, pictures(), TrainConfig(epochs=4, learning_rate=0.01))
    return model


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Data]]] = {
    "perceptron": (perceptron, digits),
    "vgg": (lambda: deepcopy(trained_vgg()), pictures),
}


def resized(model: nn.Module, method: PruningMethod, **others: Any) -> Outcome:
    data = others.pop("data", digits())
    return resize(model, data, method, **{"retraining": SHORT, "latency": False, **others})


def zeros(model: nn.Module) -> dict[str, Tensor]:
    return {name: kernel.detach() == 0 for name, kernel in model.named_parameters() if kernel.ndim > 1}


def inputs(data: Data) -> Tensor:
    assert isinstance(data.test, Part)
    return data.test.x


def refusal(model: nn.Module, method: PruningMethod, **others: Any) -> str:
    with pytest.raises((BudgetError, SettingsError)) as caught:
        resized(model, method, **others)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "settings"),
    [
        *[("perceptron", given) for given in ({}, {"scope": "global"}, {"score": "taylor"}, {"score": "movement"})],
        *[("vgg", given) for given in ({}, {"scope": "global", "score": "movement"})],
    ],
    ids=str,
)
def test_the_sparsity_is_exact_and_the_original_is_untouched(network: str, settings: dict[str, Any]) -> None:
    make, data = NETWORKS[network]
    model = make()
    state, card = state_of(model), card_of(model)
    outcome = resized(model, published.Magnitude(sparsity=0.4, **settings), data=data())  # no unit is cut out
    found = zeros(outcome.model)
    total = sum(mask.numel() for mask in found.values())
    assert sum(int(mask.sum()) for mask in found.values()) == round(0.4 * total)
    assert [len(history) for history in outcome.histories] == [4]
    assert outcome.histories[0].epochs[-1].sparsity == round(0.4 * total) / total
    assert widths_of(outcome.model) == widths_of(model)
    assert same_state(model, state) and card_of(model) == card and not model.training
    assert outcome.after == measure(outcome.model, data(), latency=False)
    assert outcome.after.nonzero < outcome.before.nonzero and outcome.after.file_kb < outcome.before.file_kb
    assert all("\n" not in reason for reason in outcome.reasons) and "40.0 %" in outcome.reasons[0]


def test_without_a_sparsity_or_a_budget_four_fifths_go() -> None:
    outcome = resized(perceptron(), Magnitude())
    assert outcome.histories[0].epochs[-1].sparsity == 0.8
    left = sum(int((~mask).sum()) for mask in zeros(outcome.model).values())
    assert left <= 0.2 * (64 * 24 + 24 * 16 + 16 * 10)  # less where a unit was cut out that something reads


AS_PUBLISHED: dict[str, Any] = {"scope": "layer", "when": "middle"}


def test_single_weights_are_pruned_early_and_ranked_together_unless_something_else_is_said() -> None:
    plain, tuning = Magnitude(), FineTuning(epochs=20)
    assert plain.pruning_for(tuning) == Pruning(scope="global", when="early")
    assert Magnitude(**AS_PUBLISHED).pruning_for(tuning) == Pruning(**AS_PUBLISHED)
    assert plain.pruning_for(Rewinding(epoch=0)) == Pruning(scope="global")
    assert Magnitude(score="movement").pruning_for(tuning) == Pruning(score="movement", scope="global")
    assert Magnitude(units=True).pruning_for(tuning) == Pruning(units=True)
    assert Magnitude(pattern=(2, 4)).pruning_for(tuning) == Pruning(pattern=(2, 4))
    assert list(plain.pruning_for(tuning).prunings(20)) == [0, 1, 2, 3, 4, 5]
    assert list(plain.pruning_for(tuning).prunings(30, after=10)) == [10, 11, 12, 13, 14, 15]


@pytest.mark.slow
def test_units_that_zeros_have_emptied_are_cut_out() -> None:
    model = perceptron()
    plain, compacted = (
        resized(model, method) for method in (published.Magnitude(sparsity=0.9), Magnitude(sparsity=0.9))
    )
    assert plain.units == {"hidden0": (24, 24), "hidden1": (16, 16)}
    found = zeros(plain.model)
    empty = {f"hidden{at}": int(found[f"hidden{at}.weight"].all(dim=1).sum()) for at in (0, 1)}
    again = resized(model, Magnitude(sparsity=0.9, initial_sparsity=0.1, **AS_PUBLISHED))  # and compacted
    assert sum(empty.values()) > 0
    assert all(again.units[name][1] <= again.units[name][0] - count for name, count in empty.items())
    assert torch.allclose(answers(again.model, inputs(digits())), answers(plain.model, inputs(digits())), atol=1e-5)
    assert compacted.after.parameters < plain.after.parameters


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "share", "bits"),
    [
        ("perceptron", 0.5, 32),
        ("perceptron", 0.25, 32),
        ("perceptron", 0.4, 16),
        ("perceptron", 0.2, 8),
        ("vgg", 0.2, 8),
    ],
)
def test_a_budget_is_kept_by_the_file_and_the_file_gives_the_same(
    tmp_path: Path, network: str, share: float, bits: Any
) -> None:
    make, data = NETWORKS[network]
    model = make()
    limit = measure(model, data(), latency=False).file_kb * share
    outcome = resized(model, Magnitude(bits=bits), budget=Budget(file_kb=limit), data=data())
    path = save(outcome.model, tmp_path / "small.safetensors")
    kb = path.stat().st_size / 1024
    assert 0.9 * limit < kb <= limit, "and the sparsity is no higher than it must be"
    assert outcome.after.file_kb == kb
    loaded = load(path)
    assert card_of(loaded).bits == bits and same_state(loaded, state_of(outcome.model))
    assert torch.equal(answers(loaded, inputs(data())), answers(outcome.model, inputs(data())))


def test_with_8_bits_every_kernel_is_whole_numbers_of_a_step() -> None:
    outcome, wide = (resized(perceptron(), Magnitude(sparsity=0.5, bits=bits)) for bits in (8, 32))
    assert outcome.after.file_kb < 0.6 * wide.after.file_kb
    for name, kernel in outcome.model.named_parameters():
        if kernel.ndim > 1:
            rows = kernel.detach().double()
            steps = rows / (rows.abs().amax(dim=1, keepdim=True).clamp(min=1e-30) / 127)
            assert torch.allclose(steps, steps.round(), atol=1e-4), name


def test_a_network_that_fits_already_loses_nothing() -> None:
    outcome = resized(perceptron(), Magnitude(), budget=Budget(file_kb=100))
    assert outcome.histories[0].epochs[-1].sparsity == 0.0
    assert not any(mask.any() for mask in zeros(outcome.model).values())


@pytest.mark.slow
def test_a_budget_that_cannot_be_met_names_the_nearest() -> None:
    said = refusal(perceptron(), Magnitude(), budget=Budget(file_kb=0.5))
    found = re.search(r"98% of it zero and 32 bits per weight, has ([\d.]+) KB on disk, the budget is 0.5$", said)
    assert said.startswith("the budget cannot be met: the network") and found is not None
    nearest = float(found[1])
    outcome = resized(perceptron(), Magnitude(), budget=Budget(file_kb=1.5 * nearest))
    assert 0.5 < outcome.after.file_kb <= 1.5 * nearest
    assert "8 bits" in refusal(perceptron(), Magnitude(bits=8), budget=Budget(file_kb=0.1))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::topiarist.errors.TopiaristWarning")
def test_a_training_that_never_fits_is_refused_with_a_size() -> None:
    diverging = FineTuning(epochs=4, optimizer="sgd", learning_rate=1e30)
    said = refusal(perceptron(), Magnitude(), budget=Budget(file_kb=4), retraining=diverging)
    assert re.search(r"has [\d.]+ KB on disk, the budget is 4$", said), said


@pytest.mark.slow
def test_no_more_is_lost_than_is_allowed() -> None:
    outcome = resized(perceptron(), Magnitude(), budget=Budget(max_drop=0.03))
    assert outcome.score[1] >= outcome.score[0] - 0.03
    assert sum(int(mask.sum()) for mask in zeros(outcome.model).values()) > 0
    most = resized(perceptron(), Magnitude(), budget=Budget(max_drop=0.99))
    assert most.histories[0].epochs[-1].sparsity == pytest.approx(0.98, abs=1 / 2080)
    assert most.after.file_kb < outcome.after.file_kb


@pytest.mark.slow
def test_where_nothing_can_go_the_network_stays_and_is_not_the_argument() -> None:
    model = perceptron()

    def whole(network: nn.Module) -> float:
        return -float(sum(int(mask.sum()) for mask in zeros(network).values()))

    outcome = resized(model, Magnitude(), budget=Budget(max_drop=0.0), score=whole)
    assert outcome.model is not model and same_state(outcome.model, state_of(model))
    assert outcome.score == (0.0, 0.0) and outcome.histories == ()
    assert "no weight can go within the loss allowed" in outcome.reasons


@pytest.mark.slow
def test_a_size_and_an_allowed_loss_are_both_kept_or_refused() -> None:
    outcome = resized(perceptron(), Magnitude(), budget=Budget(file_kb=6, max_drop=0.05))
    assert outcome.after.file_kb <= 6 and outcome.score[1] >= outcome.score[0] - 0.05
    said = refusal(perceptron(), Magnitude(), budget=Budget(file_kb=1.5, max_drop=0.01))
    found = re.fullmatch(
        r"within the budget's size, [\d.]+ points are lost and 1 are allowed: "
        r"the smallest network found that loses no more has [\d,]+ parameters and ([\d.]+) KB",
        said,
    )
    assert found is not None and float(found[1]) > 1.5


@pytest.mark.parametrize(
    ("limit", "what"),
    [({"parameters": 1000}, "parameters"), ({"macs": 900}, "multiply-accumulates"), ({"latency_ms": 0.01}, "latency")],
)
def test_limits_on_what_zeros_do_not_change_need_units(limit: dict[str, Any], what: str) -> None:
    said = refusal(perceptron(), Magnitude(), budget=Budget(**limit))
    assert said.endswith(f"a limit on {what} needs units")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "limit"), [("perceptron", "parameters"), ("perceptron", "macs"), ("vgg", "parameters")]
)
def test_with_units_such_limits_are_kept(network: str, limit: str, tmp_path: Path) -> None:
    make, data = NETWORKS[network]
    before = measure(make(), data(), latency=False)
    budget = Budget.model_validate({limit: getattr(before, limit) // 2})
    outcome = resized(make(), Magnitude(units=True), budget=budget, data=data())
    assert budget.excess(outcome.after) is None
    assert getattr(outcome.after, limit) > getattr(before, limit) // 4
    assert all(1 <= after <= width for width, after in outcome.units.values())
    assert not any(mask.any() for mask in zeros(outcome.model).values()), "what is left is whole"
    loaded = load(save(outcome.model, tmp_path / "small.safetensors"))
    assert torch.equal(answers(loaded, inputs(data())), answers(outcome.model, inputs(data())))


@pytest.mark.slow
def test_units_go_by_the_fraction_asked_for() -> None:
    outcome = resized(perceptron(), Magnitude(units=True, sparsity=0.5))
    assert outcome.units == {"hidden0": (24, 12), "hidden1": (16, 8)}
    assert "parameters, the budget is 20" in refusal(perceptron(), Magnitude(units=True), budget=Budget(parameters=20))


def test_a_pattern_is_kept_through_the_cut() -> None:
    outcome = resized(perceptron(), Magnitude(pattern=(2, 4)))
    rows = zeros(outcome.model)["hidden0.weight"].reshape(-1, 16, 4)
    assert bool((rows.sum(dim=2) == 2).all())
    assert "2 of every 4" in outcome.reasons[0]
    assert "both decide where to stop" in refusal(perceptron(), Magnitude(pattern=(2, 4)), budget=Budget(file_kb=4))


def members() -> list[nn.Module]:
    """Return a weak network, the best and a middling one, each of its own width."""
    found = [trained(14, epochs=1), trained(24, seed=1, epochs=20), trained(18, seed=2, epochs=4)]
    part = digits().validation
    assert isinstance(part, Part)
    scores = [percentage(member, part) for member in found]
    assert scores[0] < scores[2] < scores[1]
    return deepcopy(found)


def hidden(outcome: Outcome) -> list[int]:
    """Return which members are left by their widths; a unit that was emptied may be cut out."""
    assert isinstance(outcome.model, Ensemble)
    widths = [len(member.get_parameter("hidden0.weight")) for member in outcome.model.members]
    return [min((14, 24, 18), key=lambda width, found=found: abs(width - found)) for found in widths]  # type: ignore[misc]


@pytest.mark.slow
def test_an_ensemble_loses_members_only_when_it_must_and_the_weakest(tmp_path: Path) -> None:
    whole = Ensemble(members(), [1, 2, 3])
    state = state_of(whole)
    method = Magnitude(highest_sparsity=0.5)
    for limit, kept in ((9.0, {14: 1, 24: 2, 18: 3}), (6.5, {24: 2, 18: 3}), (4.2, {24: 2})):
        outcome = resized(whole, method, budget=Budget(file_kb=limit))
        assert sorted(hidden(outcome)) == sorted(kept)
        assert len(outcome.histories) == len(kept)
        assert isinstance(outcome.model, Ensemble)
        total = sum(kept.values())
        weights = dict(zip(hidden(outcome), outcome.model.weights.tolist(), strict=True))
        assert weights == pytest.approx({width: weight / total for width, weight in kept.items()})
        path = save(outcome.model, tmp_path / "ensemble.safetensors")
        assert path.stat().st_size <= 1024 * limit
        assert torch.equal(answers(load(path), inputs(digits())), answers(outcome.model, inputs(digits())))
        told = [reason for reason in outcome.reasons if "members fit" in reason]
        assert told == (
            [] if len(kept) == 3 else [f"{len(kept)} of 3 members fit: the others were left out, the weakest first"]
        )
    assert same_state(whole, state)
    said = refusal(whole, method, budget=Budget(file_kb=0.2))
    assert "its best member alone, 98% of it zero" in said


@pytest.mark.slow
def test_each_member_of_an_ensemble_gets_the_sparsity() -> None:
    outcome = resized(Ensemble(members()), published.Magnitude(sparsity=0.4))
    assert isinstance(outcome.model, Ensemble)
    for member in outcome.model.members:
        found = zeros(member)
        total = sum(mask.numel() for mask in found.values())
        assert sum(int(mask.sum()) for mask in found.values()) == round(0.4 * total)


def test_members_of_an_ensemble_keep_their_places() -> None:
    outcome = resized(Ensemble(members()), published.Magnitude(sparsity=0.4))
    assert hidden(outcome) == [14, 24, 18]
    assert outcome.units == {f"members.{at}.hidden0": (width, width) for at, width in enumerate((14, 24, 18))}


def test_published_is_the_papers_training() -> None:
    method = published.Magnitude()
    again = method.usual_retraining(0)
    assert isinstance(again, Rewinding) and again.epoch == 0 and not again.weights and again.distillation is None
    assert again.training == TrainConfig(epochs=400, batch_size=128, learning_rate=1e-4, weight_decay=0.002)
    assert again.training.optimizer == "adam" and again.training.weight_decay_on == "kernels"
    expected = Pruning(sparsity=0.8, initial_sparsity=0.1, begin=100, every=10, times=20)
    assert method.prunings(400) == expected.prunings(400)
    assert method.scope == "layer" and method.score == "magnitude" and method.when == "middle"
    assert (method.bits, method.has_own_target) == (32, True)
    assert Magnitude().usual_retraining(0) == FineTuning(epochs=20)
    assert "both decide where to stop" in refusal(perceptron(), method, budget=Budget(file_kb=4))


def test_a_sparsity_and_a_budget_are_refused_together() -> None:
    assert "both decide where to stop" in refusal(perceptron(), Magnitude(sparsity=0.5), budget=Budget(max_drop=0.1))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"sparsity": 1}, "less than 1"),
        ({"bits": 4}, "bits"),
        ({"highest_sparsity": 0}, "greater than 0"),
        ({"pattern": (2, 4), "units": True}, "leave out"),
        ({"schedule": "constant", "times": 3}, "times has no effect"),
        ({"published": True}, "published: there is no such setting"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Magnitude(**settings)


def test_a_users_own_training_is_refused() -> None:
    said = refusal(perceptron(), Magnitude(), retraining=None, finetune=lambda network: None)
    assert said.startswith("magnitude prunes while it trains") and "surgery.Masks" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epoch", "settings"), [(0, {}), (3, {}), (2, {"begin": 2, "times": 2}), (3, {"schedule": "one-shot"})]
)
def test_rewinding_prunes_in_the_original_training(epoch: int, settings: dict[str, Any]) -> None:
    model = perceptron()
    outcome = resized(model, published.Magnitude(sparsity=0.5, **settings), retraining=Rewinding(epoch=epoch))
    (history,) = outcome.histories
    assert [step.number for step in history.epochs] == list(range(epoch + 1, 7))
    rates = [step.learning_rate for step in train(deepcopy(model), digits(), ORIGINAL).epochs]
    assert [step.learning_rate for step in history.epochs] == rates[epoch:]
    assert history.epochs[-1].sparsity == 0.5 and card_of(outcome.model).training == card_of(model).training
    alone = deepcopy(model)
    pruning = {"sparsity": 0.5, "initial_sparsity": 0.1 if "schedule" not in settings else 0.0, **settings}
    train(alone, digits(), TrainConfig(**{**ORIGINAL.model_dump(), "after_epoch": epoch, "pruning": pruning}))
    assert same_state(outcome.model, state_of(alone))


def test_weights_are_rewound_to_those_of_an_early_network() -> None:
    early = mlp([64, 24, 16, 10], generator=generator(0, "weights"))
    train(early, digits(), TrainConfig(**{**ORIGINAL.model_dump(), "until_epoch": 1}))
    again = Rewinding(epoch=1, weights=True)
    method = published.Magnitude(sparsity=0.5, schedule="one-shot", begin=1)
    outcome = resized(perceptron(), method, retraining=again, early=early)
    alone, once = deepcopy(early), Pruning(sparsity=0.5, schedule="one-shot", begin=1)
    train(alone, digits(), TrainConfig(**{**ORIGINAL.model_dump(), "after_epoch": 1, "pruning": once}))
    assert same_state(outcome.model, state_of(alone))


def test_a_training_with_a_pattern_can_be_repeated() -> None:
    model = mlp([64, 8, 10], generator=generator(0, "weights"))
    train(model, digits(), TrainConfig(epochs=4, pruning=Pruning(pattern=(2, 4))))
    assert len(resized(model, Magnitude(sparsity=0.6), retraining=Rewinding(epoch=0)).histories[0]) == 4


@pytest.mark.slow
@pytest.mark.parametrize("whole", ["perceptron", "ensemble"])
def test_the_seed_decides(whole: str) -> None:
    def made(seed: int) -> nn.Module:
        model = perceptron() if whole == "perceptron" else Ensemble(members())
        return resized(model, Magnitude(sparsity=0.5, bits=8), seed=seed, retraining=FineTuning(epochs=2)).model

    first = made(0)
    assert same_state(made(0), state_of(first)) and not same_state(made(1), state_of(first))


def test_members_of_an_ensemble_are_trained_with_seeds_of_their_own() -> None:
    twins = Ensemble([deepcopy(trained(14, epochs=1)), deepcopy(trained(14, epochs=1))])
    outcome = resized(twins, published.Magnitude(sparsity=0.2))
    assert isinstance(outcome.model, Ensemble)
    one, other = outcome.model.members
    assert not same_state(one, state_of(other))


def test_a_loss_without_a_validation_part_is_judged_on_the_training_part() -> None:
    whole = digits().train
    assert isinstance(whole, Part)
    data = replace(digits(), validation=Part(whole.x[:0], whole.y[:0]))
    with pytest.warns(TopiaristWarning, match="which flatters"):
        resized(perceptron(), Magnitude(), budget=Budget(max_drop=0.9), data=data)


def test_the_published_training_follows_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "TRAINING", paper.TRAINING.model_copy(update={"epochs": 2}))
    first, again, other = (resized_by_paper(seed).model for seed in (1, 1, 2))
    assert same_state(first, state_of(again)) and not same_state(first, state_of(other))


def resized_by_paper(seed: int) -> Outcome:
    return resize(perceptron(), digits(), published.Magnitude(), seed=seed, latency=False)


@pytest.mark.slow
def test_an_ensemble_of_pruned_members_is_packed() -> None:
    members = [resized(perceptron(), Magnitude(bits=bits)).model for bits in (8, 16)]
    ensemble = Ensemble(members)
    assert card_of(ensemble).bits == 16
    assert card_of(Ensemble([members[0], perceptron()])).bits is None
    assert len(serialise(ensemble)) < 0.4 * len(serialise(Ensemble([perceptron(), perceptron()])))


def test_a_pruned_network_that_is_pruned_again_gets_nothing_back() -> None:
    once = resized(perceptron(), Magnitude(sparsity=0.5)).model
    again = deepcopy(once)
    train(again, digits(), TrainConfig(epochs=3, pruning=Pruning(sparsity=0.7)))
    for name, kernel in once.named_parameters():
        if kernel.ndim > 1:
            assert not again.get_parameter(name)[kernel == 0].any()


@pytest.mark.slow
def test_the_weights_of_members_are_rewound_to_those_of_an_early_ensemble() -> None:
    members = [deepcopy(trained(12, seed=seed)) for seed in range(2)]
    early = Ensemble([deepcopy(trained(12, seed=seed, epochs=2)) for seed in range(2)])
    for member in early.members:
        attach(member, replace(card_of(member), training=None))
    rewinding = Rewinding(epoch=2, weights=True, training=ORIGINAL)
    found = resize(
        Ensemble(members), digits(), Magnitude(sparsity=0.5), retraining=rewinding, early=early, latency=False
    )
    assert [len(history) for history in found.histories] == [4, 4]


@pytest.mark.parametrize(("sparsity", "initial"), [(0, 0.0), (0.05, 0.05), (0.8, 0.1)])
def test_published_starts_at_ten_per_cent_or_below_where_less_is_asked(sparsity: float, initial: float) -> None:
    assert published.Magnitude(sparsity=sparsity).initial_sparsity == initial
