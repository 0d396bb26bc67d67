"""The network for a table: what it learns from, what is chosen on unseen rows, every task, weights and groups."""

from dataclasses import replace

import numpy
import pytest
import torch
from sklearn.ensemble import ExtraTreesClassifier
from torch import Tensor

from topiarist import Data, TrainConfig, models, save
from topiarist.data import Part, load_data
from topiarist.errors import DataError, ModelError, SettingsError
from topiarist.models import Ensemble, card_of
from topiarist.randomness import child_seed, generator
from topiarist.storage import load
from topiarist.tasks import Classification, Regression
from topiarist.training import Augmentation, Distillation, TabularConfig, train, train_tabular
from topiarist.training.inference import predict_logits
from topiarist.training.tables.boosting import cross_fit_boosting
from topiarist.training.tables.folds import inner_folds
from topiarist.training.tables.forests import can_be_forest, cross_fit_forest
from topiarist.training.tables.mixing import mixed_samples
from topiarist.training.tables.teachers import CrossFitted, best_blend, blended
from topiarist.training.tables.teaching import fit_teacher

QUICK = TabularConfig(
    rates=(0.01,), dropouts=(0.0,), weight_decays=(0.01,), epochs=8, network_samples=20_000, filled_to=1_000, folds=3
)


def part_of(data: Data) -> Part:
    assert isinstance(data.train, Part)
    return data.train


def make_data(kind: str, *, weights: bool = False, groups: bool = False) -> Data:
    random = generator(0, "table")
    x = torch.randn(200, 5, generator=random).numpy()
    line = 2 * x[:, 0] - x[:, 1] * (x[:, 2] > 0)
    y = {
        "classes": numpy.where(line > 0.5, "high", numpy.where(line > -0.5, "middle", "low")),
        "numbers": line + 100.0,
        "labels": numpy.stack([line > 0, x[:, 3] > 0.5], axis=1).astype(int),
    }[kind]
    return Data.from_arrays(
        x,
        y,
        task=kind,  # type: ignore[arg-type]  # one of the three
        scaling="auto",
        sample_weight=numpy.linspace(0.5, 1.5, 200) if weights else None,
        groups=numpy.arange(200) // 4 if groups else None,
    )


@pytest.mark.parametrize("kind", ["classes", "numbers", "labels"])
@pytest.mark.parametrize("teacher", ["ensemble", "boosting", "both"])
def test_the_network_learns_every_task_from_every_teacher(kind: str, teacher: str) -> None:
    data = make_data(kind, weights=teacher == "both")
    found = train_tabular(data, QUICK.changed(teacher=teacher))
    part = data.test
    assert isinstance(part, Part)
    guessed = data.task.guess(part_of(data).y).float().expand(len(part), -1)
    guess, got = (data.task.loss_of(outputs, part.y) for outputs in (guessed, predict_logits(found.network, part.x)))
    assert got < 0.6 * guess
    assert found.answers.shape == (len(data.train), data.task.outputs)
    assert set(found.validated) == {"network", "teacher"}
    assert (found.ensemble is None) == (teacher == "boosting")
    assert sum(found.teacher.shares.values()) == pytest.approx(1)


def test_neither_validation_nor_test_part_is_looked_at() -> None:
    data = make_data("classes")
    blind = replace(data, test=part_of(data).take(torch.arange(2)), validation=part_of(data).take(torch.arange(3)))
    one, other = (train_tabular(each, QUICK).network for each in (data, blind))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_weights_count_and_the_seed_decides_all() -> None:
    plain, weighted = make_data("numbers"), make_data("numbers", weights=True)
    first, again, other = (train_tabular(data, QUICK).network for data in (plain, plain, weighted))
    x = part_of(plain).x
    assert torch.equal(predict_logits(first, x), predict_logits(again, x))
    assert not torch.equal(predict_logits(first, x), predict_logits(other, x))


def test_folds_share_no_group_and_hold_every_row_once() -> None:
    data = make_data("numbers", groups=True)
    folds = inner_folds(data, 4, seed=0)
    assert sorted(torch.cat([fold.rows for fold in folds]).tolist()) == list(range(len(data.train)))
    for fold in folds:
        learned, judged = fold.learned(), fold.left_out()
        assert learned.groups is not None and judged.groups is not None
        assert not set(learned.groups) & set(judged.groups)


def test_boosting_answers_rows_by_the_model_that_left_them_out() -> None:
    data = make_data("classes")
    folds = inner_folds(data, 3, seed=0)
    fitted = cross_fit_boosting(folds, data.task, seed=0)
    part = part_of(data)
    assert torch.allclose(fitted.out_of_fold.exp().sum(dim=1), torch.ones(len(part)), atol=1e-4)
    seen = data.task.loss_of(fitted.outputs(part.x), part.y)
    assert seen < 0.7 * data.task.loss_of(fitted.out_of_fold, part.y)  # what was learned by heart is not what is known


def test_trees_teach_where_several_classes_have_few_rows() -> None:
    data = make_data("classes")
    folds = inner_folds(data, 3, seed=0)
    fitted = cross_fit_forest(folds, data.task, seed=0)
    part = part_of(data)
    assert fitted.out_of_fold.shape == (len(part), 3) and fitted.out_of_fold.isfinite().all()
    learned = folds[0].learned()
    trees = ExtraTreesClassifier(random_state=child_seed(0, "forest") % 2**32).fit(learned.x.numpy(), learned.y.numpy())
    expected = trees.predict_proba(part.x[folds[0].rows].numpy()).clip(min=1e-3)
    assert fitted.out_of_fold[folds[0].rows].exp().numpy() == pytest.approx(expected, abs=1e-6)
    names = [each.name for each in fit_teacher(data, QUICK).candidates]
    assert names[-1] == "forest" and names[-2] == "boosting"
    assert [each.name for each in fit_teacher(data, QUICK.changed(forest_rows=10)).candidates] == names[:-1]
    assert not can_be_forest(make_data("numbers").task, 10, 100)


def test_a_class_that_a_fold_does_not_show_is_unlikely_and_no_error() -> None:
    data = make_data("classes")
    rows = (part_of(data).y != 2).nonzero()[:, 0]
    rare = torch.cat([rows, (part_of(data).y == 2).nonzero()[:1, 0]])
    data = replace(data, train=part_of(data).take(rare))
    fitted = cross_fit_boosting(inner_folds(data, 3, seed=0), data.task, seed=0)
    assert fitted.out_of_fold.isfinite().all()
    only = replace(data, train=part_of(data).take((part_of(data).y == 0).nonzero()[:, 0]))
    constant = cross_fit_boosting(inner_folds(only, 3, seed=0), data.task, seed=0)
    assert (constant.out_of_fold.argmax(dim=1) == 0).all()


def test_the_blend_is_no_worse_than_its_best_part_and_leaves_out_what_does_not_help() -> None:
    random = generator(1, "outputs")
    y = torch.randint(3, (300,), generator=random)
    task, part = Classification(("a", "b", "c")), Part(torch.zeros(300, 1), y)
    right = torch.nn.functional.one_hot(y, 3).float() * 2

    def candidate(name: str, outputs: Tensor) -> CrossFitted:
        return CrossFitted(name, "classes", [lambda x: outputs], outputs)

    noisy = [candidate(str(number), right + 1.5 * torch.randn(300, 3, generator=random)) for number in range(2)]
    wrong = candidate("wrong", -right)
    found = best_blend([*noisy, wrong], part, task)
    losses = [task.loss_of(each.out_of_fold, y) for each in noisy]
    assert set(found.shares) == {"0", "1"}
    assert task.loss_of(found.out_of_fold, y) < min(losses)


def test_a_blend_of_numbers_is_their_mean_and_of_classes_that_of_probabilities() -> None:
    one, other = torch.tensor([[0.0, 2.0]]), torch.tensor([[1.0, -1.0]])
    assert torch.allclose(blended([one, other], [3, 1], "numbers"), 0.75 * one + 0.25 * other)
    mixed = blended([one, other], [3, 1], "classes").softmax(dim=1)
    assert torch.allclose(mixed, 0.75 * one.softmax(dim=1) + 0.25 * other.softmax(dim=1))


def test_mixed_samples_have_each_input_of_a_row_or_of_one_of_its_five_nearest() -> None:
    x = torch.randn(40, 3, generator=generator(0, "x"))
    new, rows = mixed_samples(x, 200, seed=1)
    distances = torch.cdist(x, x).fill_diagonal_(float("inf"))
    for sample, row in zip(new, rows, strict=True):
        near = distances[row].topk(5, largest=False).indices
        assert any(((sample == x[row]) | (sample == x[other])).all() for other in near)
    assert len(mixed_samples(x, 0, seed=1)[0]) == 0
    assert torch.equal(mixed_samples(x[:1], 3, seed=1)[0], x[:1].expand(3, -1))  # a row alone has no neighbour


def test_more_rows_are_seen_less_often_and_none_is_left_out() -> None:
    assert [TabularConfig().epochs_of(rows, 60_000) for rows in (100, 6_000, 200_000)] == [50, 10, 4]
    few = QUICK.changed(search_rows=60, rates=(0.001, 0.01))
    data = make_data("classes")
    found = train_tabular(data, few)
    assert found.answers.shape[0] == len(data.train)
    assert found.setting is not None and next(iter(found.teacher.shares)) in (str(found.setting), "boosting")


def test_the_network_is_saved_with_what_it_needs_to_read_a_table(tmp_path: object) -> None:
    data = load_data("iris")
    network = train_tabular(data, QUICK).network
    assert card_of(network).preprocessing == data.preprocessing
    file = f"{tmp_path}/network.safetensors"
    save(network, file)
    again = load(file)
    x = part_of(data).x
    assert torch.equal(predict_logits(again, x), predict_logits(network, x))


def test_many_inputs_make_a_narrower_network() -> None:
    assert models.tabular_widths(10, 3) == (64, 32)
    assert models.tabular_widths(2_000, 3) == (8, 32)
    weights = sum(value.numel() for value in models.tabular(200, 10).parameters())
    assert 4 * weights <= 100 * 1024


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rates": (0.01, 0.01)}, "rates are tried once each; found 0.01, 0.01"),
        ({"folds": 1}, "folds"),
        ({"dropouts": (1.0,)}, "dropouts"),
        ({"weight_decays": (-0.1,)}, "weight_decays"),
        ({"weight_decays": (0.3, 0.3)}, "weight_decays are tried once each"),
    ],
)
def test_settings_that_make_no_sense_are_one_line(settings: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        TabularConfig(**settings)


def test_what_is_no_table_or_too_small_is_refused() -> None:
    images = Data.from_arrays(numpy.zeros((20, 1, 3, 3)), [0, 1] * 10)
    with pytest.raises(DataError, match=r"rows of a table in memory are needed; found samples \(1, 3, 3\)"):
        train_tabular(images, QUICK)
    data = make_data("numbers")
    with pytest.raises(DataError, match="has 1 training sample"):
        train_tabular(replace(data, train=part_of(data).take(torch.arange(1))), QUICK)


def test_a_network_learns_from_answers_as_from_the_network_that_gives_them() -> None:
    data = make_data("numbers")
    teacher = models.tabular(5, 1, generator=generator(3, "teacher"))
    config = TrainConfig(epochs=3, distillation=Distillation())
    one, other = (models.tabular(5, 1) for _ in range(2))
    train(one, data, config, teacher=teacher)
    train(other, data, config, teacher=predict_logits(teacher, part_of(data).x))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_answers_that_do_not_fit_are_refused() -> None:
    data, config = make_data("numbers"), TrainConfig(epochs=1, distillation=Distillation())
    count = len(data.train)
    with pytest.raises(ModelError, match=rf"real numbers \({count}, 1\), a row per sample; found .*\(3, 1\)"):
        train(models.tabular(5, 1), data, config, teacher=torch.zeros(3, 1))
    with pytest.raises(ModelError, match="must be finite; 1 are not"):
        answers = torch.zeros(count, 1)
        answers[0] = float("nan")
        train(models.tabular(5, 1), data, config, teacher=answers)
    varied = config.changed(augmentation=Augmentation(mixup=0.2))
    with pytest.raises(SettingsError, match="give a network as the teacher"):
        train(models.tabular(5, 1), data, varied, teacher=torch.zeros(count, 1))


def test_the_ensemble_is_one_network_of_the_task() -> None:
    found = train_tabular(make_data("numbers"), QUICK.changed(teacher="ensemble"))
    assert isinstance(found.ensemble, Ensemble) and isinstance(card_of(found.ensemble).task, Regression)
    x = part_of(make_data("numbers")).x
    assert torch.allclose(found.ensemble(x), found.teacher.outputs(x), atol=1e-5)
