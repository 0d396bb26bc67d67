"""Attention with sizes of its own computes what torch's does, with every option, under the same names."""

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from topiarist.models.attention import Attention, with_free_attention
from topiarist.randomness import isolated

WIDTH, HEADS, QUERIES, KEYS, BATCH = 8, 2, 3, 4, 2
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "without biases": {"bias": False},
    "other keys": {"kdim": 5},
    "other keys and values": {"kdim": 5, "vdim": 6},
    "biases as keys and values": {"add_bias_kv": True},
    "a zero beside the keys": {"add_zero_attn": True},
    "both": {"add_bias_kv": True, "add_zero_attn": True, "kdim": 5},
    "dropout": {"dropout": 0.5},
}


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


def pair(**options: Any) -> tuple[nn.MultiheadAttention, Attention]:
    """Return torch's attention with random weights, and the one that takes its place."""
    theirs = nn.MultiheadAttention(WIDTH, HEADS, **options).double().eval()
    with torch.no_grad(), isolated(0):
        for parameter in theirs.parameters():
            parameter.normal_()
    return theirs, Attention.in_place_of(theirs)


def inputs(options: dict[str, Any], *, batched: bool, batch_first: bool) -> tuple[Tensor, ...]:
    sizes = ((QUERIES, WIDTH), (KEYS, options.get("kdim", WIDTH)), (KEYS, options.get("vdim", WIDTH)))
    if not batched:
        return tuple(random(length, width) for length, width in sizes)
    made = (random(BATCH, length, width) for length, width in sizes)
    return tuple(each if batch_first else each.transpose(0, 1) for each in made)


def assert_equal(theirs: nn.Module, ours: nn.Module, given: tuple[Tensor, ...], **settings: Any) -> None:
    with torch.no_grad():
        expected, weights = theirs(*given, **settings)
        found, own = ours(*given, **settings)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    assert (own is None) == (weights is None)
    if weights is not None:
        torch.testing.assert_close(own, weights, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("batched", [True, False])
def test_it_computes_what_torchs_does(name: str, batch_first: bool, batched: bool) -> None:
    options = OPTIONS[name]
    theirs, ours = pair(batch_first=batch_first, **options)
    given = inputs(options, batched=batched, batch_first=batch_first)
    for need_weights, average in itertools.product((True, False), repeat=2):
        assert_equal(theirs, ours, given, need_weights=need_weights, average_attn_weights=average)


def masks(batched: bool) -> dict[str, dict[str, Any]]:
    hidden = torch.tensor([[False, True, False, False], [False, False, False, True]])
    pairs = torch.zeros(QUERIES, KEYS, dtype=torch.bool)
    pairs[0, 2] = pairs[1, 0] = True
    rows = BATCH * HEADS if batched else HEADS
    each = torch.stack([pairs.roll(number, 1) for number in range(rows)])
    padding = hidden if batched else hidden[0]
    added = torch.where(pairs, -torch.inf, 0.5).double()
    return {
        "padding": {"key_padding_mask": padding},
        "padding of numbers": {"key_padding_mask": torch.where(padding, -torch.inf, 0.25).double()},
        "pairs": {"attn_mask": pairs},
        "pairs of numbers": {"attn_mask": added},
        "pairs for each head": {"attn_mask": each},
        "pairs of numbers for each head": {"attn_mask": random(rows, QUERIES, KEYS)},
        "both": {"key_padding_mask": padding, "attn_mask": pairs},
        "both for each head": {"key_padding_mask": padding, "attn_mask": each},
    }


@pytest.mark.parametrize("kind", masks(batched=True))
@pytest.mark.parametrize("name", ["plain", "both"])
@pytest.mark.parametrize("batched", [True, False])
def test_masks_of_all_kinds(kind: str, name: str, batched: bool) -> None:
    options = OPTIONS[name]
    theirs, ours = pair(batch_first=True, **options)
    given = inputs(options, batched=batched, batch_first=True)
    for need_weights in (True, False):
        assert_equal(theirs, ours, given, need_weights=need_weights, **masks(batched)[kind])


def test_a_causal_mask_that_is_named_so() -> None:
    theirs, ours = pair(batch_first=True)
    x = random(BATCH, KEYS, WIDTH)
    mask = nn.Transformer.generate_square_subsequent_mask(KEYS, dtype=torch.float64)
    for need_weights in (True, False):
        assert_equal(theirs, ours, (x, x, x), attn_mask=mask, is_causal=True, need_weights=need_weights)


@pytest.mark.parametrize("name", OPTIONS)
def test_the_state_has_the_same_names_and_is_shared(name: str) -> None:
    theirs, ours = pair(**OPTIONS[name])
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert all(one is other for one, other in zip(theirs.parameters(), ours.parameters(), strict=True))
    ours.load_state_dict(theirs.state_dict())


def test_gradients_are_the_same() -> None:
    theirs, ours = pair(batch_first=True)
    given = inputs({}, batched=True, batch_first=True)
    found = []
    for module in (theirs, ours):
        module.zero_grad()
        module(*given)[0].square().sum().backward()
        found.append([parameter.grad for parameter in module.parameters()])
    torch.testing.assert_close(found[0], found[1], rtol=1e-9, atol=1e-11)


class Own(nn.MultiheadAttention):
    """Attention with a forward of its own."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return super().forward(*args, **kwargs)


def test_all_of_a_network_are_replaced_but_those_with_a_forward_of_their_own() -> None:
    model = nn.ModuleDict({"a": nn.MultiheadAttention(8, 2), "b": Own(8, 2), "c": nn.TransformerEncoderLayer(8, 2, 16)})
    assert with_free_attention(model, ["a"]) == ["a"]
    assert with_free_attention(model) == ["c.self_attn"]
    assert type(model["b"]) is Own
    assert isinstance(model["c"].self_attn, Attention)


@pytest.mark.parametrize("norm_first", [True, False])
def test_an_encoder_computes_the_same(norm_first: bool) -> None:
    with isolated(0):
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=norm_first).double().eval()
    x = random(BATCH, KEYS, WIDTH)
    hidden = torch.tensor([[False, False, False, True], [False, False, False, False]])
    with torch.no_grad():
        expected = layer(x, src_key_padding_mask=hidden)
        with_free_attention(layer)
        found = layer(x, src_key_padding_mask=hidden)
    torch.testing.assert_close(found[~hidden], expected[~hidden], rtol=1e-9, atol=1e-11)
