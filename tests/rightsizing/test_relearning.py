"""What is handed out learns once more from the validation part, when all is decided, and from no test sample ever."""

from dataclasses import replace

import numpy
import pytest
import torch

from tests.rightsizing.tasks import blobs, planned, shrunk, small_network, use_small_teachers
from topiarist.data import Data, Part
from topiarist.models import card_of
from topiarist.rightsizing import folds, relearning
from topiarist.rightsizing.baseline import fold_with
from topiarist.rightsizing.folds import Fold
from topiarist.rightsizing.record import BASELINE, RightsizingRecord
from topiarist.rightsizing.relearning import can_learn_more, relearned, with_more
from topiarist.rightsizing.teaching import with_teachers
from topiarist.training.inference import predict_logits


def taught_fold(data: Data) -> Fold:
    members = [small_network(seed) for seed in range(2)]
    return with_teachers([fold_with(data, members, members[0], seed=0)], "ensemble", 0)[0]


def test_the_rows_to_learn_from_are_those_of_both_parts_with_groups_and_weights() -> None:
    groups, weights = numpy.arange(180) // 4, numpy.linspace(1, 2, 180)
    data = blobs(groups=groups, sample_weight=weights)
    parts = data.train, data.validation
    more = with_more(data).train
    assert isinstance(more, Part) and more.groups is not None and more.weights is not None
    for part in parts:
        assert isinstance(part, Part) and part.groups is not None and part.weights is not None
    assert torch.equal(more.x, torch.cat([part.x for part in parts]))  # type: ignore[union-attr]
    assert torch.equal(more.y, torch.cat([part.y for part in parts]))  # type: ignore[union-attr]
    assert torch.equal(more.weights, torch.cat([part.weights for part in parts]))  # type: ignore[union-attr, misc]
    assert list(more.groups) == [group for part in parts for group in part.groups]  # type: ignore[union-attr]


def test_networks_learn_from_the_validation_part_and_not_from_the_test_part(monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_teachers(monkeypatch)
    data = blobs(200, apart=1.5)
    assert isinstance(data.validation, Part) and isinstance(data.test, Part)
    other_test = replace(data, test=replace(data.test, y=2 - data.test.y, samples=-data.test.x))
    other_held = replace(data, validation=replace(data.validation, y=2 - data.validation.y))
    fold, plan = taught_fold(data), planned(5, trainings=2)
    network, x = small_network(7), torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    before = predict_logits(network, x)

    def answers(of: Data) -> torch.Tensor:
        found = relearned({"one": network}, replace(fold, data=of), plan, "ensemble", 0)
        return predict_logits(found["one"], x)

    assert torch.equal(answers(data), answers(other_test))
    assert not torch.allclose(answers(data), answers(other_held), atol=1e-3)
    assert torch.equal(predict_logits(network, x), before)  # what was decided on stays as it was


def test_networks_learn_once_more_where_rows_are_few_and_the_teacher_learns_from_targets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fold, plan = taught_fold(blobs()), planned(5, trainings=2)
    assert can_learn_more(fold, plan, "both") and can_learn_more(fold, plan, "ensemble")
    assert not can_learn_more(fold, plan, "baselines") and not can_learn_more(fold, plan, None)
    assert not can_learn_more(fold, replace(plan, design="held out"), "both")
    assert not can_learn_more(replace(fold, lesson=None), plan, "both")
    monkeypatch.setattr(relearning, "FEW_ROWS", 100)
    assert folds.FEW_ROWS > 100 and not can_learn_more(fold, plan, "both")


def test_the_record_has_what_networks_were_worth_before_and_the_test_part_sees_those_handed_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_small_teachers(monkeypatch)
    data = blobs(240, apart=2.0)
    found = shrunk(data, None, max_drop=0.2)
    record: RightsizingRecord = found.record
    assert record.verdict.chosen != BASELINE
    flags = {network.id: network.relearned for network in record.networks}
    assert flags[record.verdict.chosen] and not all(flags.values())
    assert record.test is not None and isinstance(data.test, Part)
    answers = predict_logits(found.model, data.test.x).argmax(dim=1)
    assert record.test.after["accuracy"] == pytest.approx(float((answers == data.test.y).double().mean()))
    assert card_of(found.model).task is not None and card_of(found.model).preprocessing is not None
