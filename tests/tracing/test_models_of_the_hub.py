"""Models as those of the hub: code that takes another way where tokens are padding, outputs by name."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from topiarist import surgery
from topiarist.tracing import anatomy


class GroupedQueries(nn.Module):
    """A language model whose queries share keys in groups: by torch's own way without padding, by hand with it."""

    def __init__(self) -> None:
        super().__init__()
        self.heads, self.keys, self.dims = 4, 2, 4
        self.repeats = self.heads // self.keys
        self.embed = nn.Embedding(20, 8)
        self.query, self.key, self.value = nn.Linear(8, 16), nn.Linear(8, 8), nn.Linear(8, 8)
        self.project, self.head = nn.Linear(16, 8), nn.Linear(8, 20)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        x = self.embed(input_ids)
        q = self.query(x).view(*x.shape[:2], -1, self.dims).transpose(1, 2)
        k, v = (layer(x).view(*x.shape[:2], -1, self.dims).transpose(1, 2) for layer in (self.key, self.value))
        if attention_mask is None:
            mixed = functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        else:
            k, v = (each.repeat_interleave(self.repeats, dim=1) for each in (k, v))
            seen = attention_mask[:, None, None, :].bool()
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        given: Tensor = self.head(x + self.project(mixed.transpose(1, 2).flatten(2)))
        return given


def test_a_cut_on_an_example_without_a_mask_also_runs_with_one() -> None:
    model, tokens = GroupedQueries().eval(), torch.randint(20, (2, 6))
    found = anatomy(model, {"input_ids": tokens})
    units = {name: range(1, space.size, 2) for name, space in found.free.items() if space.size > 1}
    assert any("heads" in name for name in units)
    smaller = surgery.remove(model, {"input_ids": tokens}, units=units, anatomy=found)
    everything = torch.ones_like(tokens)
    torch.testing.assert_close(smaller(tokens, everything), smaller(tokens), rtol=1e-5, atol=1e-6)
    everything[:, 0] = 0
    assert smaller(tokens, everything).shape == (2, 6, 20)


class Outputs(dict[str, Tensor]):
    """What models of the hub return: tensors by name."""

    @property
    def logits(self) -> Tensor:
        return self["logits"]

    def to_tuple(self) -> tuple[Tensor, ...]:
        return tuple(self.values())


class Detector(nn.Module):
    """A network that returns scores, boxes, and what it read them from."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.classes, self.boxes = nn.Linear(5, 8), nn.Linear(8, 3), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Outputs:
        h = torch.relu(self.trunk(x))
        return Outputs(logits=self.classes(h), pred_boxes=self.boxes(h), last_hidden_state=h)


def test_boxes_beside_scores_are_outputs_and_hidden_states_are_not() -> None:
    found = anatomy(Detector(), torch.randn(2, 5))
    assert set(found.free) == {"trunk"}
