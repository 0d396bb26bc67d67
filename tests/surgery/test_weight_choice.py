"""Which weights stay: exactly as many as asked for, those that torch keeps too; what is gone stays gone."""

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils import prune

from topiarist.randomness import generator
from topiarist.surgery.choice.weights import choose_by_layer, choose_overall, choose_pattern, removed_counts

SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=6)
SPARSITY = st.floats(0, 1, exclude_max=True)
CHOICES: dict[str, Any] = {"layer": choose_by_layer, "global": choose_overall}


def scores_of(sizes: list[int], seed: int = 0) -> dict[str, Tensor]:
    return {f"layer{at}": torch.rand(size, generator=generator(seed, f"{at}")) for at, size in enumerate(sizes)}


def ones(scores: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: torch.ones_like(score, dtype=torch.bool) for name, score in scores.items()}


def gone(masks: dict[str, Tensor]) -> dict[str, int]:
    return {name: int((~mask).sum()) for name, mask in masks.items()}


@pytest.mark.slow
@given(SIZES, SPARSITY)
def test_each_layer_loses_its_share_and_the_whole_is_exact(sizes: list[int], sparsity: float) -> None:
    scores = scores_of(sizes)
    lost = gone(choose_by_layer(scores, ones(scores), sparsity))
    asked = round(sparsity * sum(sizes))
    full = sum(lost[name] == len(score) - 1 for name, score in scores.items())  # the others make up for these
    for name, score in scores.items():
        assert abs(lost[name] - sparsity * len(score)) < 1 + full + 1e-9, name
        assert lost[name] < len(score), "one of each stays"
    spared = sum(lost[name] == len(score) - 1 and sparsity * len(score) > lost[name] for name, score in scores.items())
    assert asked - spared <= sum(lost.values()) <= asked
    assert spared or sum(lost.values()) == asked


@pytest.mark.slow
@given(SIZES, SPARSITY)
def test_ranked_together_the_whole_is_exact_and_one_of_each_layer_stays(sizes: list[int], sparsity: float) -> None:
    scores = scores_of(sizes)
    masks = choose_overall(scores, ones(scores), sparsity)
    assert sum(gone(masks).values()) == min(round(sparsity * sum(sizes)), sum(sizes) - len(sizes))
    assert all(bool(mask[scores[name].argmax()]) for name, mask in masks.items())
    lost = torch.cat([scores[name][~mask] for name, mask in masks.items()])
    for name, mask in masks.items():
        others = [score for score in scores[name][mask].tolist() if score < float(scores[name].max())]
        assert not len(lost) or all(score >= float(lost.max()) for score in others)


def test_layers_of_no_weights_are_no_trouble() -> None:
    scores = {"empty": torch.zeros(0, 3), "other": torch.rand(2, 4, generator=generator(0, "scores"))}
    for choose in CHOICES.values():
        assert gone(choose(scores, ones(scores), 0.5)) == {"empty": 0, "other": 4}


@pytest.mark.parametrize("shape", [(7, 5), (4, 3, 3, 3), (6, 2, 5)])
@pytest.mark.parametrize("sparsity", [0.0, 0.1, 0.5, 0.8, 0.97])
def test_the_weights_that_go_are_those_of_torch(shape: tuple[int, ...], sparsity: float) -> None:
    weight = torch.randn(shape, generator=generator(0, "weights"))
    layer: Any = nn.ParameterDict({"weight": nn.Parameter(weight.clone())})
    prune.l1_unstructured(layer, "weight", amount=round(sparsity * weight.numel()))  # type: ignore[no-untyped-call]
    scores = {"weight": weight.abs()}
    for choose in CHOICES.values():
        assert torch.equal(choose(scores, ones(scores), sparsity)["weight"], layer.weight_mask.bool())


@pytest.mark.parametrize("sparsity", [0.1, 0.5, 0.8])
def test_the_weights_that_go_of_all_layers_are_those_of_torch(sparsity: float) -> None:
    layers: list[Any] = [nn.Linear(9, 8), nn.Linear(8, 5), nn.Conv2d(2, 3, 3)]
    with torch.no_grad():
        for at, layer in enumerate(layers):
            layer.weight.normal_(generator=generator(0, f"{at}"))
    scores = {f"{at}": layer.weight.detach().abs() for at, layer in enumerate(layers)}
    masks = choose_overall(scores, ones(scores), sparsity)
    named = [(layer, "weight") for layer in layers]
    total = sum(score.numel() for score in scores.values())
    prune.global_unstructured(named, prune.L1Unstructured, amount=round(sparsity * total))
    for at, layer in enumerate(layers):
        assert torch.equal(masks[f"{at}"], layer.weight_mask.bool())


@pytest.mark.parametrize("sparsity", [0.1, 0.5, 0.8])
def test_the_units_that_go_are_those_of_torch(sparsity: float) -> None:
    layer: Any = nn.Conv2d(3, 10, 3)
    with torch.no_grad():
        layer.weight.normal_(generator=generator(0, "weights"))
    scores = {"units": layer.weight.detach().flatten(1).square().sum(dim=1)}
    kept = choose_by_layer(scores, ones(scores), sparsity)["units"]
    prune.ln_structured(layer, "weight", amount=round(sparsity * 10), n=2, dim=0)  # type: ignore[no-untyped-call]
    assert torch.equal(layer.weight_mask.flatten(1).bool(), kept[:, None].expand(10, 27))


def test_of_equal_ones_the_first_go() -> None:
    scores = {"first": torch.ones(4), "second": torch.ones(2, 3)}
    by_layer = choose_by_layer(scores, ones(scores), 0.5)
    assert by_layer["first"].tolist() == [False, False, True, True]
    assert by_layer["second"].tolist() == [[False] * 3, [True] * 3]
    together = choose_overall(scores, ones(scores), 0.5)
    assert sum(gone(together).values()) == 5 and together["first"].any() and together["second"].any()
    pattern = choose_pattern(scores={"row": torch.ones(2, 5)}, masks={"row": torch.ones(2, 5).bool()}, zeros=2, group=4)
    assert pattern["row"].tolist() == [[False, False, True, True, True]] * 2


@pytest.mark.slow
@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=4).filter(lambda shape: math.prod(shape) <= 300),
    st.integers(2, 6).flatmap(lambda group: st.tuples(st.integers(1, group - 1), st.just(group))),
)
def test_a_pattern_takes_the_lowest_of_every_group_of_a_row(shape: list[int], pattern: tuple[int, int]) -> None:
    zeros, group = pattern
    score = torch.rand(shape, generator=generator(0, "scores"))
    for laid in (score, score.contiguous(memory_format=torch.channels_last) if score.ndim == 4 else score):
        mask = choose_pattern({"w": laid}, ones({"w": laid}), zeros=zeros, group=group)["w"]
        assert mask.shape == score.shape
        for values, kept in zip(score.flatten(1).tolist(), mask.flatten(1).tolist(), strict=True):
            whole = len(values) // group * group
            assert all(kept[whole:])
            for start in range(0, whole, group):
                order = sorted(range(group), key=lambda at, start=start: values[start + at])  # type: ignore[misc]
                assert [at for at in range(group) if not kept[start + at]] == sorted(order[:zeros])


@pytest.mark.slow
@given(SIZES, st.lists(SPARSITY, min_size=2, max_size=5).map(sorted), st.integers(0, 9))
def test_what_is_gone_stays_gone_where_all_are_ranked_together(
    sizes: list[int], sparsities: list[float], seed: int
) -> None:
    masks = ones(scores_of(sizes))
    for number, sparsity in enumerate(sparsities):
        after = choose_overall(scores_of(sizes, seed + number), masks, sparsity)  # the scores are others each time
        assert all(not after[name][~mask].any() for name, mask in masks.items())
        masks = after


@given(st.lists(st.integers(1, 60), min_size=1, max_size=1), st.lists(SPARSITY, min_size=2, max_size=5).map(sorted))
def test_what_is_gone_of_one_layer_stays_gone(sizes: list[int], sparsities: list[float]) -> None:
    masks = ones(scores_of(sizes))
    for number, sparsity in enumerate(sparsities):
        after = choose_by_layer(scores_of(sizes, number), masks, sparsity)
        assert all(not after[name][~mask].any() for name, mask in masks.items())
        masks = after


@pytest.mark.slow
@example([64, 128, 24], [0.9 - 0.9 / 216, 0.9], 0)
@given(SIZES, st.lists(SPARSITY, min_size=2, max_size=5).map(sorted), st.integers(0, 9))
def test_what_is_gone_stays_gone_where_each_layer_loses_its_share(
    sizes: list[int], sparsities: list[float], seed: int
) -> None:
    masks = ones(scores_of(sizes))
    for number, sparsity in enumerate(sparsities):
        after = choose_by_layer(scores_of(sizes, seed + number), masks, sparsity)
        assert all(not after[name][~mask].any() for name, mask in masks.items())
        masks = after


def test_no_layer_loses_less_at_a_higher_sparsity() -> None:
    sizes = {"hidden0": 64, "hidden1": 128, "output": 24}
    counts = [dict.fromkeys(sizes, 0)]
    for number in range(1000):
        counts.append(removed_counts(sizes, number / 1000, counts[-1]))
    assert [sum(found.values()) for found in counts[1:]] == [
        min(round(number / 1000 * 216), 213)
        for number in range(1000)  # one of each layer stays
    ]
    assert all(before[name] <= after[name] for before, after in pairwise(counts) for name in sizes)


@given(st.integers(1, 4), st.integers(4, 12), st.integers(1, 9))
def test_what_is_gone_stays_gone_in_a_pattern(rows: int, width: int, seed: int) -> None:
    masks = {"w": torch.ones(rows, width, dtype=torch.bool)}
    for zeros in (1, 2, 3):
        scores = {"w": torch.rand(rows, width, generator=generator(seed, f"{zeros}"))}
        after = choose_pattern(scores, masks, zeros=zeros, group=4)
        assert not after["w"][~masks["w"]].any()
        assert int((~after["w"]).sum()) == rows * (width // 4) * zeros
        masks = after


def test_what_is_gone_goes_first_whatever_its_score() -> None:
    scores, mask = {"w": torch.tensor([9.0, -5.0, 1.0, 2.0])}, {"w": torch.tensor([False, True, True, True])}
    assert choose_by_layer(scores, mask, 0.5)["w"].tolist() == [False, False, True, True]
    assert choose_overall(scores, mask, 0.5)["w"].tolist() == [False, False, True, True]
    assert choose_pattern({"w": scores["w"][None]}, {"w": mask["w"][None]}, zeros=1, group=4)["w"].tolist() == [
        [False, True, True, True]
    ]
