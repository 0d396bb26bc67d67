"""Dims of heads in another basis: exact, nearest by a plain oracle, and in any form of attention."""

import math
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from topiarist import anatomy, surgery
from topiarist.models.copying import copied
from topiarist.randomness import generator
from topiarist.surgery.bases.exactness import BasisTrials, ExactBases, exact_bases
from topiarist.surgery.bases.streams import slicing_basis
from topiarist.surgery.bases.turning import best_bases, has_dims, turn_bases
from topiarist.surgery.calibration import batches_for
from topiarist.surgery.choice.choosing import cut_to_widths
from topiarist.surgery.edits.plan import Plan, plan_of

WIDTH, HEADS, DIMS = 12, 2, 4


class Separate(nn.Module):
    """Attention with layers of their own; `between` is what happens to queries and keys before they meet."""

    def __init__(self, between: Callable[[Tensor], Tensor] = lambda x: x, shared: int = 1) -> None:
        super().__init__()
        self.dims, self.between, self.shared = DIMS, between, shared
        self.query, self.project = nn.Linear(WIDTH, HEADS * DIMS), nn.Linear(HEADS * DIMS, 3)
        self.key, self.value = (nn.Linear(WIDTH, HEADS * DIMS // shared) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        queries, keys, values = (
            layer(x).unflatten(-1, (-1, self.dims)).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        if self.shared > 1:
            keys, values = (each.repeat_interleave(self.shared, 1) for each in (keys, values))
        logits = self.between(queries) @ self.between(keys).mT / math.sqrt(self.dims)
        mixed: Tensor = self.project((logits.softmax(-1) @ values).transpose(1, 2).flatten(2))
        return mixed


class Packed(nn.Module):
    """Queries, keys and values from one layer, one after the other or head by head."""

    def __init__(self, *, by_head: bool) -> None:
        super().__init__()
        self.all, self.project = nn.Linear(WIDTH, 3 * HEADS * DIMS), nn.Linear(HEADS * DIMS, 3)
        self.heads, self.by_head = HEADS, by_head

    def forward(self, x: Tensor) -> Tensor:
        shape = (self.heads, 3, -1) if self.by_head else (3, self.heads, -1)
        each = self.all(x).unflatten(-1, shape)
        each = each.transpose(2, 3) if self.by_head else each
        given = functional.scaled_dot_product_attention(*each.permute(2, 0, 3, 1, 4))
        mixed: Tensor = self.project(given.transpose(1, 2).flatten(2))
        return mixed


def rotary(x: Tensor) -> Tensor:
    """Turn pairs of dims by an angle that grows with the place of a token."""
    angles = torch.arange(x.shape[-2], dtype=x.dtype)[:, None]
    first, second = x.chunk(2, -1)
    return torch.cat([first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos()], -1)


def torchs_own() -> nn.Module:
    return nn.Sequential(
        nn.Linear(WIDTH, 8), nn.TransformerEncoderLayer(8, HEADS, 16, dropout=0.0, batch_first=True), nn.Linear(8, 3)
    )


FORMS: dict[str, Callable[[], nn.Module]] = {
    "separate": Separate,
    "grouped": lambda: Separate(shared=2),
    "packed": lambda: Packed(by_head=False),
    "by head": lambda: Packed(by_head=True),
    "torch's": torchs_own,
}


def drawn(make: Callable[[], nn.Module], seed: int = 0) -> tuple[nn.Module, Tensor]:
    """Return a network with weights that make attention uneven, and samples."""
    model, random = make().eval(), generator(seed, "weights")
    with torch.no_grad():
        for parameter in model.parameters():
            scale = 1.5 / parameter[0].numel() ** 0.5 if parameter.ndim > 1 else 0.3
            parameter.copy_(scale * torch.randn(parameter.shape, generator=random))
    return model, torch.randn(96, 5, WIDTH, generator=random) * torch.linspace(0.2, 2, WIDTH)


def dims_of(model: nn.Module, x: Tensor) -> dict[str, list[int]]:
    """Return half of the dims of all heads."""
    found = anatomy(model, x[:2])
    return {name: list(range(0, space.size, 2)) for name, space in found.free.items() if has_dims(space)}


def bases_of(model: nn.Module, x: Tensor) -> ExactBases:
    """Return which bases of dims are free."""
    found = anatomy(model, x[:2])
    trials = BasisTrials.of(model, x[:2], found)
    assert trials is not None
    return exact_bases(model, found, [name for name, space in found.free.items() if has_dims(space)], trials)


def test_products_in_the_first_dims_are_the_nearest_of_their_rank() -> None:
    random = numpy.random.default_rng(0)
    queries, keys = random.normal(size=(40, 6)) @ random.normal(size=(6, 6)), random.normal(size=(30, 6))
    left, values, right = numpy.linalg.svd(queries @ keys.T, full_matrices=False)  # the oracle: Eckart and Young
    first, second = best_bases(torch.from_numpy(queries.T @ queries), torch.from_numpy(keys.T @ keys))
    torch.testing.assert_close(first @ second.T, torch.eye(6, dtype=torch.float64))
    for rank in range(1, 6):
        nearest = left[:, :rank] * values[:rank] @ right[:rank]
        ours = (queries @ first.numpy()[:, :rank]) @ (keys @ second.numpy()[:, :rank]).T
        errors = [numpy.linalg.norm(queries @ keys.T - found) for found in (ours, nearest)]
        assert errors[0] <= 1.001 * errors[1]  # the ridge costs the rest


@pytest.mark.parametrize("form", FORMS)
def test_another_basis_changes_no_answer(form: str) -> None:
    model, x = drawn(FORMS[form])
    before = model(x)
    old = {name: parameter.clone() for name, parameter in model.named_parameters()}
    changed = turn_bases(model, x[:2], anatomy(model, x[:2]), dims_of(model, x), batches_for(x, model, x[:2]))
    torch.testing.assert_close(model(x), before, rtol=1e-3, atol=1e-4)
    differs = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, old[name])}
    assert differs == set(changed) and changed


@pytest.mark.parametrize("form", FORMS)
def test_half_of_the_dims_go_with_less_lost_than_by_dropping_them(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = drawn(FORMS[form])
    units = dims_of(model, x)
    known: dict[str, Any] = {"units": units, "calibration": x, "anatomy": anatomy(model, x[:2]), "settling": 0}
    turned = surgery.remove(model, x[:2], **known)
    monkeypatch.setattr("topiarist.surgery.applying.turn_bases", lambda *_: ())
    dropped = surgery.remove(model, x[:2], **known)
    errors = [float((model(x) - cut(x)).detach().norm()) for cut in (turned, dropped)]
    assert errors[0] < 0.8 * errors[1]


def test_dims_that_repeat_others_go_without_loss() -> None:
    model, x = drawn(Separate)
    assert isinstance(model, Separate)
    with torch.no_grad():
        for layer in (model.query, model.key, model.value):
            for tensor in (layer.weight, layer.bias):
                dims = tensor.view(HEADS, DIMS, -1)
                dims[:, 2], dims[:, 3] = 2 * dims[:, 0], dims[:, 1] - dims[:, 0]
    cut = surgery.remove(model, x[:2], units={"query:dims": [0, 3]}, calibration=x, settling=0)
    assert cut.dims == 2
    torch.testing.assert_close(cut(x), model(x), rtol=1e-3, atol=1e-3)  # as if nothing were gone, root of dims and all


@pytest.mark.parametrize("between", [rotary, lambda x: functional.normalize(x, dim=-1), torch.relu])
def test_queries_and_keys_keep_their_basis_where_more_than_a_product_lies_between(
    between: Callable[[Tensor], Tensor],
) -> None:
    model, x = drawn(lambda: Separate(between))
    bases = bases_of(model, x)
    assert not bases.products
    assert {head.module for each in bases.readings.values() for head in each.heads} == {"value", "project"}


def test_keys_are_free_of_constants_in_front_of_a_softmax_alone() -> None:
    class Linear(Separate):
        def forward(self, x: Tensor) -> Tensor:
            queries, keys, values = (
                layer(x).unflatten(-1, (-1, self.dims)).transpose(1, 2) for layer in (self.query, self.key, self.value)
            )
            mixed: Tensor = self.project((queries @ keys.mT @ values).transpose(1, 2).flatten(2))
            return mixed

    for make, free in ((Separate, {"query:dims"}), (Linear, set())):
        model, x = drawn(make)
        bases = bases_of(model, x)
        assert bases.free == free
        (product,) = bases.products.values()
        assert [head.module for head in product.few] == ["key"] * HEADS


def test_a_plan_replays_the_basis() -> None:
    model, x = drawn(Separate)
    cut = surgery.remove(model, x[:2], units={"query:dims": [0, 3]}, calibration=x, settling=0)
    again = surgery.apply(plan_of(cut), model, x[:2])
    torch.testing.assert_close(again(x), cut(x), rtol=0, atol=0)
    made_anew = surgery.apply(Plan(plan_of(cut).edits), model, x[:2], calibration=x, settling=0)
    torch.testing.assert_close(made_anew(x), cut(x))


def test_a_cut_to_widths_turns_dims_too() -> None:
    model, x = drawn(lambda: Packed(by_head=False))
    cut = cut_to_widths(model, x[:2], keep={"all:dims": 2}, calibration=x, settling=0)
    same = surgery.remove(model, x[:2], units=cut.units, calibration=x, settling=0)
    torch.testing.assert_close(cut.model(x), same(x), rtol=1e-3, atol=1e-4)


class Residual(nn.Module):
    """Two perceptrons beside a shortcut, each behind a norm, or with norms behind the sums."""

    def __init__(self, norm: Callable[[int], nn.Module] = nn.LayerNorm, *, norms_first: bool = True) -> None:
        super().__init__()
        self.before, self.last, self.norm = nn.Linear(6, WIDTH), nn.Linear(WIDTH, 3), norm(WIDTH)
        self.wide, self.back = (
            nn.ModuleList([nn.Linear(*sizes) for _ in range(2)]) for sizes in ((WIDTH, 9), (9, WIDTH))
        )
        self.norms, self.norms_first = nn.ModuleList([norm(WIDTH) for _ in range(2)]), norms_first
        self.added = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = self.before(x) + self.added
        for norm, wide, back in zip(self.norms, self.wide, self.back, strict=True):
            if self.norms_first:
                x = x + back(functional.gelu(wide(norm(x))))
            else:
                x = norm(x + back(functional.gelu(wide(x))))
        answers: Tensor = self.last(self.norm(x)[:, 0])
        return answers


STREAM = list(range(0, WIDTH, 2))  # half of its units


@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.RMSNorm])
def test_a_stream_in_another_basis_changes_no_answer(norm: Callable[[int], nn.Module]) -> None:
    model, x = drawn(lambda: Residual(norm))
    x, turned = x[..., :6], copied(model)
    changed = turn_bases(turned, x[:2], anatomy(model, x[:2]), {"before": STREAM}, batches_for(x, model, x[:2]))
    torch.testing.assert_close(turned(x), model(x), rtol=1e-3, atol=1e-4)
    assert {"before.weight", "added", "norm.weight", "last.weight"} <= set(changed)


@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.RMSNorm])
def test_half_of_a_stream_goes_with_less_lost_than_by_dropping_it(
    norm: Callable[[int], nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    turned, dropped = 0.0, 0.0
    for seed in range(2):
        model, x = drawn(lambda: Residual(norm), seed)
        x = x[..., :6]
        known: dict[str, Any] = {"units": {"before": STREAM}, "calibration": x, "settling": 0}
        cut = surgery.remove(model, x[:2], **known)
        torch.testing.assert_close(surgery.apply(plan_of(cut), model, x[:2])(x), cut(x), rtol=0, atol=0)
        turned += float((model(x) - cut(x)).detach().norm())
        with monkeypatch.context() as patch:
            patch.setattr("topiarist.surgery.applying.turn_bases", lambda *_: ())
            dropped += float((model(x) - surgery.remove(model, x[:2], **known)(x)).detach().norm())
    assert turned < 0.8 * dropped


def test_a_stream_of_low_rank_goes_without_loss() -> None:
    model, x = drawn(Residual)
    x = x[..., :6]
    assert isinstance(model, Residual)
    low = torch.randn(WIDTH, 4, generator=generator(0, "low"))
    with torch.no_grad():
        for layer in (model.before, *model.back):
            layer.weight.copy_(low @ torch.randn(4, layer.in_features, generator=generator(1, "low")))
            layer.bias.zero_()
        model.added.zero_()
    cut = surgery.remove(model, x[:2], units={"before": STREAM}, calibration=x, settling=0)
    torch.testing.assert_close(cut(x), model(x), rtol=1e-2, atol=1e-2)


def test_a_stream_with_norms_behind_the_sums_keeps_its_basis() -> None:
    model, x = drawn(lambda: Residual(norms_first=False))
    x = x[..., :6]
    assert not turn_bases(model, x[:2], anatomy(model, x[:2]), {"before": STREAM}, batches_for(x, model, x[:2]))


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("count", [1, 3, 6])
def test_units_that_stay_hold_the_principal_components(count: int, centred: bool) -> None:
    random = numpy.random.default_rng(count)
    samples = random.normal(size=(50, 7)) * numpy.geomspace(1, 0.01, 7) @ random.normal(size=(7, 7))
    samples -= samples.mean(1, keepdims=True) if centred else 0
    stays = torch.arange(7) % 7 < count
    basis = slicing_basis(torch.from_numpy(samples.T @ samples), stays, centred=centred).numpy()
    numpy.testing.assert_allclose(basis @ basis.T, numpy.eye(7), atol=1e-9)
    sliced = samples @ basis[:count].T
    if centred:
        numpy.testing.assert_allclose(basis.sum(1), 1)
        sliced -= sliced.mean(1, keepdims=True)  # what a layer norm over the rest sees
    values = numpy.linalg.svd(samples, compute_uv=False)[: count - 1 if centred else count]  # the oracle
    numpy.testing.assert_allclose((sliced**2).sum(), (values**2).sum(), rtol=1e-9, atol=1e-9)
